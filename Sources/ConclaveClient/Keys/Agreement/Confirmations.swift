import Contract
import Crypto
import MediaModel

/// The members prove to each other that they share a secret and a history of lists (protocol section 5.8). This informs people, and stops
/// nothing.
struct Confirmations: Sendable {
  /// The state of confirming the epoch in use.
  private struct Confirming: Sendable {
    let epoch: UInt32
    /// When this device confirms; nil once it has.
    var due: Instant?
    /// When the members that have not confirmed are named.
    let deadline: Instant
    var confirmation: Confirmation?
    /// Buckets that arrived before this device had the secret.
    var early: [Int: ConfirmationBucket] = [:]
    var isRefused = false
    /// A join key was sent along with the confirmation.
    var hasRefresh = false
    var isLate = false

    var nextTimeout: Instant? { due ?? (isLate || epoch < 2 ? nil : deadline) }
  }

  /// Everything from which the displayed state follows, except the list.
  private struct Basis: Equatable, Sendable {
    var epoch: UInt32
    var isLate: Bool
    /// Counts the findings; nil without the secret.
    var findings: Int?
    /// The revision of the pins.
    var pins: Int
  }

  /// During a storm of joins no epoch lasts long enough. A small call without a confirmed epoch for this time is not
  /// confirmed.
  static let stormTime: Duration = .seconds(120)
  static let stormSize = 64

  private var confirming: Confirming?
  /// Buckets of the newest epoch that arrived before this device used it.
  private var earlyBuckets: [UInt32: [Int: ConfirmationBucket]] = [:]
  /// The state last reported to the app.
  private(set) var told: ConfirmationState?
  private var basis: Basis?
  private var lastConfirmed: Instant?
  /// A fresh secret has been used since this device's join key was replaced.
  private var isRefreshDue = false
  private var refreshed: Instant?

  var nextTimeout: Instant? { confirming?.nextTimeout }
  /// The epoch that is being confirmed.
  var epoch: UInt32? { confirming?.epoch }

  /// Whether the device has proven that it has the key of this epoch.
  func isConfirmed(_ entry: ListEntry, in epoch: UInt32?) -> Bool {
    confirming?.epoch == epoch && confirming?.confirmation?.isConfirmed(entry) ?? false
  }

  /// The epoch in use begins, or its secret has arrived.
  mutating func began(_ epoch: Epoch, own: OwnStay, spread: inout Spread, now: Instant) {
    if epoch.secret != nil, epoch.mode == .fresh, epoch.number > 1 { isRefreshDue = true }
    let time = Duration.milliseconds(max(500, 10 * epoch.list.entries.count))
    if confirming?.epoch != epoch.number {
      confirming = Confirming(
        epoch: epoch.number, deadline: now.advanced(by: time + .seconds(10)), early: earlyBuckets[epoch.number] ?? [:])
      earlyBuckets = [:]
    }
    guard epoch.number >= 2, confirming?.confirmation == nil, let key = epoch.confirmationKey(own.call) else { return }
    confirming?.due = now.advanced(by: spread.part(of: time))
    confirming?.confirmation = Confirmation(key: key, list: epoch.list, own: own.participant)
  }

  /// Confirms that this device has the key, unless a newer epoch has been announced by then.
  mutating func handleTimeout(_ epoch: Epoch?, own: inout OwnStay, now: Instant, into effects: inout [KeyEffect]) {
    guard let due = confirming?.due, due <= now else { return }
    confirming?.due = nil
    guard let epoch, confirming?.epoch == epoch.number, let key = epoch.confirmationKey(own.call) else { return }
    var refresh: JoinKey?
    if isRefreshDue, refreshed.map({ $0.duration(to: now) >= JoinCredentials.refreshInterval }) ?? true {
      let age = own.began.duration(to: now)
      refresh = own.join.refresh(own.identity, at: own.join.joinKey.at + age)
    }
    confirming?.hasRefresh = refresh != nil
    let tag = Base64Bytes(Confirmation.tag(key, own.participant, own.sender))
    effects.append(
      .request(.inCall(own.call, .confirmKey(ConfirmKey(epoch: epoch.number, tag: tag, joinKey: refresh)))))
  }

  mutating func sent(_ epoch: UInt32, taken: Bool, own: inout OwnStay, now: Instant) {
    guard taken, confirming?.epoch == epoch, confirming?.hasRefresh == true else { return }
    confirming?.hasRefresh = false
    own.join.publish()
    isRefreshDue = false
    refreshed = now
  }

  // MARK: the others'

  /// `list` is the list of the epoch to which the buckets belong.
  mutating func take(
    _ confirmed: KeysConfirmed, _ list: EpochList, isNewest: Bool, call: CallID, into effects: inout [KeyEffect]
  ) {
    let limit = (list.entries.count + Confirmation.bucketSize - 1) / Confirmation.bucketSize
    guard confirmed.epoch == confirming?.epoch else {
      // Others have switched before this device.
      guard isNewest else { return }
      for bucket in confirmed.buckets where (0..<limit).contains(bucket.index) {
        earlyBuckets[confirmed.epoch, default: [:]][bucket.index] = bucket
      }
      return
    }
    guard confirming?.confirmation != nil else {
      for bucket in confirmed.buckets where (0..<limit).contains(bucket.index) {
        confirming?.early[bucket.index] = bucket
      }
      return
    }
    for bucket in confirmed.buckets { check(bucket, call, into: &effects) }
  }

  private mutating func check(_ bucket: ConfirmationBucket, _ call: CallID, into effects: inout [KeyEffect]) {
    guard let finding = confirming?.confirmation?.check(bucket), let epoch = confirming?.epoch else { return }
    switch finding {
    case .right: break
    case .examine(let index):
      effects.append(.request(.inCall(call, .listConfirmations(ListConfirmations(epoch: epoch, bucket: index)))))
    case .refused: refuse(into: &effects)
    }
  }

  private mutating func refuse(into effects: inout [KeyEffect]) {
    guard confirming?.isRefused == false else { return }
    confirming?.isRefused = true
    effects.append(.refused(.confirmationNotTrue))
  }

  /// The individual tags of a bucket. Returns the devices that do not share the key of that epoch.
  mutating func take(
    _ reply: ConfirmationTags?, bucket: Int, epoch: UInt32, into effects: inout [KeyEffect]
  ) -> [ParticipantNumber] {
    guard confirming?.epoch == epoch else { return [] }
    confirming?.confirmation?.check(reply?.tags ?? [], of: bucket)
    if confirming?.confirmation?.isContradicted == true { refuse(into: &effects) }
    return (confirming?.confirmation?.refuted ?? []).sorted()
  }

  // MARK: what is shown

  /// Notifies the app if the state changed. Most events of a large call do not change it, so it is computed only from a new basis. `list` is that of the
  /// epoch being confirmed.
  mutating func tell(
    _ list: EpochList?, isNewest: Bool, own: OwnStay, known: KnownDevices, now: Instant,
    into effects: inout [KeyEffect]
  ) {
    if confirming?.early.isEmpty == false, confirming?.confirmation != nil {
      let early = confirming?.early ?? [:]
      confirming?.early = [:]
      for index in early.keys.sorted() { if let bucket = early[index] { check(bucket, own.call, into: &effects) } }
    }
    guard let epoch = confirming?.epoch, epoch >= 2, let list else { return }
    if let deadline = confirming?.deadline, deadline <= now { confirming?.isLate = true }
    let isConfirmed = confirming?.confirmation?.isConfirmed ?? false
    if isConfirmed { lastConfirmed = now }
    let isLate: Bool
    if isNewest {
      isLate = confirming?.isLate ?? false
    } else {
      isLate =
        list.entries.count <= Self.stormSize && (lastConfirmed ?? own.began).duration(to: now) >= Self.stormTime
    }
    let basis = Basis(
      epoch: epoch, isLate: isLate, findings: confirming?.confirmation?.revision, pins: known.pins.revision)
    guard basis != self.basis else { return }
    self.basis = basis
    let state = isConfirmed ? .confirmed : state(of: list, isLate: isLate, own, known)
    guard state != told else { return }
    told = state
    effects.append(.confirmation(state))
  }

  private func state(of list: EpochList, isLate: Bool, _ own: OwnStay, _ known: KnownDevices) -> ConfirmationState {
    guard let confirmation = confirming?.confirmation else {
      guard isLate else { return .confirming }
      return .notConfirmed(list.entries.filter { $0.address != own.address }.map(known.pinned))
    }
    guard isLate || !confirmation.refuted.isEmpty else { return .confirming }
    return .notConfirmed(confirmation.missing.map(known.pinned))
  }
}

/// Whether the others have proven that they share the key and the history of lists.
public enum ConfirmationState: Sendable, Hashable {
  /// Not all have confirmed yet, as is usual after a change.
  case confirming
  /// All on the list have.
  case confirmed
  /// These devices have not confirmed, or not with the key in use.
  case notConfirmed([PinnedDevice])
}

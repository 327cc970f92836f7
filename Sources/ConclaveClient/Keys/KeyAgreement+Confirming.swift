import Contract
import Crypto
import MediaModel

/// The members prove to each other that they share a secret and a history of lists. It informs people, and stops nothing.
extension KeyAgreement {
  /// The state of confirming the epoch in use.
  struct Confirming: Sendable {
    let epoch: UInt32
    /// When this device confirms; nil once it has.
    var due: Instant?
    /// When the members that have not confirmed are named.
    let deadline: Instant
    var confirmation: Confirmation?
    /// Buckets that came before this device had the secret.
    var early: [Int: ConfirmationBucket] = [:]
    var isRefused = false
    /// A join key went with the confirmation.
    var hasRefresh = false
    var isLate = false

    var nextTimeout: Instant? { due ?? (isLate || epoch < 2 ? nil : deadline) }
  }

  /// In a storm of joins no epoch lasts long enough; a small call that has no confirmed epoch for this time is not confirmed.
  static let stormTime: Duration = .seconds(120)
  static let stormSize = 64

  /// The epoch in use begins, or its secret has come.
  mutating func beginConfirming(_ epoch: Epoch, now: Instant) {
    let spreading = Duration.milliseconds(max(500, 10 * epoch.list.entries.count))
    if confirming?.epoch != epoch.number {
      confirming = Confirming(
        epoch: epoch.number, deadline: now.advanced(by: spreading + .seconds(10)),
        early: earlyBuckets[epoch.number] ?? [:])
      earlyBuckets = [:]
    }
    guard epoch.number >= 2, confirming?.confirmation == nil, let key = epoch.confirmationKey(call) else { return }
    let wait = spread(spreading)
    confirming?.due = now.advanced(by: wait)
    confirming?.confirmation = Confirmation(key: key, list: epoch.list, own: participant)
  }

  /// Says that this device has the key, unless a newer epoch is announced by then.
  mutating func confirm(now: Instant, into effects: inout [KeyEffect]) {
    guard let due = confirming?.due, due <= now, let number = confirming?.epoch else { return }
    confirming?.due = nil
    guard number == newest, let key = epochs[number]?.confirmationKey(call) else { return }
    let own = SenderIdentity(fingerprint: identity.fingerprint, joinId: join.joinId.bytes)
    var refresh: JoinKey?
    if refreshDue, refreshed.map({ $0.duration(to: now) >= JoinCredentials.refreshInterval }) ?? true {
      let age = began.duration(to: now)
      refresh = join.refresh(identity, at: join.joinKey.at + age)
    }
    confirming?.hasRefresh = refresh != nil
    effects.append(
      .request(
        .inCall(
          call,
          .confirmKey(
            ConfirmKey(
              epoch: number, tag: Base64Bytes(Confirmation.tag(key, participant, own)), joinKey: refresh)))))
  }

  mutating func confirmationSent(_ epoch: UInt32, taken: Bool, now: Instant) {
    guard taken, confirming?.epoch == epoch, confirming?.hasRefresh == true else { return }
    confirming?.hasRefresh = false
    join.publish()
    refreshDue = false
    refreshed = now
  }

  // MARK: the others'

  mutating func take(_ confirmed: KeysConfirmed, into effects: inout [KeyEffect]) {
    guard !confirmed.buckets.isEmpty, let epoch = epochs[confirmed.epoch] else { return }
    let limit = (epoch.list.entries.count + Confirmation.bucketSize - 1) / Confirmation.bucketSize
    guard confirmed.epoch == confirming?.epoch else {
      // Others have switched before this device.
      guard confirmed.epoch == newest else { return }
      for bucket in confirmed.buckets where (0..<limit).contains(bucket.index) {
        earlyBuckets[newest, default: [:]][bucket.index] = bucket
      }
      return
    }
    guard confirming?.confirmation != nil else {
      for bucket in confirmed.buckets where (0..<limit).contains(bucket.index) {
        confirming?.early[bucket.index] = bucket
      }
      return
    }
    for bucket in confirmed.buckets { check(bucket, into: &effects) }
  }

  private mutating func check(_ bucket: ConfirmationBucket, into effects: inout [KeyEffect]) {
    guard let finding = confirming?.confirmation?.check(bucket), let number = confirming?.epoch else { return }
    switch finding {
    case .right: break
    case .examine(let index):
      effects.append(.request(.inCall(call, .listConfirmations(ListConfirmations(epoch: number, bucket: index)))))
    case .refused: refuseConfirmation(into: &effects)
    }
  }

  private mutating func refuseConfirmation(into effects: inout [KeyEffect]) {
    guard confirming?.isRefused == false else { return }
    confirming?.isRefused = true
    refuse(.confirmationNotTrue, into: &effects)
  }

  mutating func take(_ reply: Confirmations?, bucket: Int, epoch: UInt32, into effects: inout [KeyEffect]) {
    guard confirming?.epoch == epoch else { return }
    confirming?.confirmation?.check(reply?.tags ?? [], of: bucket)
    if confirming?.confirmation?.isContradicted == true { refuseConfirmation(into: &effects) }
    for number in (confirming?.confirmation?.refuted ?? []).sorted() {
      if let entry = epochs[epoch]?.list[number] { warn(.otherKey, entry, into: &effects) }
    }
  }

  // MARK: what is shown

  /// All that the state to show follows from, besides the list.
  struct ConfirmationBasis: Equatable, Sendable {
    var epoch: UInt32
    var isLate: Bool
    /// Counts the findings; nil without the secret.
    var findings: Int?
    /// The revision of the pins.
    var pins: Int
  }

  /// Tells the app when the state changed. Most events of a large call change nothing of it, so it is worked out only from a new basis.
  mutating func tellConfirmation(now: Instant, into effects: inout [KeyEffect]) {
    if confirming?.early.isEmpty == false, confirming?.confirmation != nil {
      let early = confirming?.early ?? [:]
      confirming?.early = [:]
      for index in early.keys.sorted() { if let bucket = early[index] { check(bucket, into: &effects) } }
    }
    guard let number = confirming?.epoch, number >= 2, let list = epochs[number]?.list else { return }
    if let deadline = confirming?.deadline, deadline <= now { confirming?.isLate = true }
    let isConfirmed = confirming?.confirmation?.isConfirmed ?? false
    if isConfirmed { lastConfirmed = now }
    let isLate: Bool
    if number == newest {
      isLate = confirming?.isLate ?? false
    } else {
      isLate = list.entries.count <= Self.stormSize && (lastConfirmed ?? began).duration(to: now) >= Self.stormTime
    }
    let basis = ConfirmationBasis(
      epoch: number, isLate: isLate, findings: confirming?.confirmation?.revision, pins: pins.revision)
    guard basis != confirmationBasis else { return }
    confirmationBasis = basis
    let state = isConfirmed ? .confirmed : confirmationState(of: list, isLate: isLate)
    guard state != confirmationTold else { return }
    confirmationTold = state
    effects.append(.confirmation(state))
  }

  private func confirmationState(of list: EpochList, isLate: Bool) -> ConfirmationState {
    guard let confirmation = confirming?.confirmation else {
      guard isLate else { return .confirming }
      return .notConfirmed(list.entries.filter { $0.address != identity.address }.map(pinned))
    }
    guard isLate || !confirmation.refuted.isEmpty else { return .confirming }
    return .notConfirmed(confirmation.missing.map(pinned))
  }
}

import Contract
import MediaModel

/// Which key this device sends under, and when it sends nothing (protocol sections 5.3, 5.5 and 5.12).
struct Switching: Sendable {
  /// How long the server may take to switch to a secret that this device has, and to one that excludes somebody.
  static let patience: Duration = .seconds(10)
  static let departurePatience: Duration = .seconds(3)

  /// The highest epoch to which the server has switched and which this device has not accepted.
  private(set) var awaited: UInt32 = 0
  /// When this device sends under an epoch to which nobody has switched.
  private var ownSwitches: [UInt32: Instant] = [:]
  var securing = SecuringTimer()
  /// Devices of the list in use about which the person has to decide, judged with one state of the pins.
  private var distrusted = Distrusted()
  /// When the last fresh secret, or the first of this stay, came into use, and whether its age was reported.
  private var freshSince: Instant?
  private var isAgeTold = false
  var rotateMinutes = 10
  /// The state last reported to the cipher and the app.
  private(set) var sending: UInt32?
  private(set) var silence: [SilenceCause] = []

  /// When this device next switches by itself, or has to report how old its key is.
  func nextTimeout(inUse current: UInt32?, isBroken: Bool) -> Instant? {
    [
      ownSwitches.values.min(), current == 1 && !silence.contains(.securing) ? securing.due : nil,
      ageDue(isInUse: current != nil, isBroken: isBroken),
    ].compactMap { $0 }.min()
  }

  /// The server has switched to an epoch whose announcement was missed, or refused.
  mutating func await(_ epoch: UInt32) { awaited = epoch }

  /// The secret of an epoch that is not in use has arrived. This device waits for the server to switch, but not forever: somebody who has left may still have
  /// the key in use.
  mutating func keyed(_ epoch: Epoch, inUse: Epoch?, now: Instant) {
    let losesSomebody = inUse.map { !epoch.list.changes(since: $0.list).gone.isEmpty } ?? false
    let patience = epoch.mode == .fresh && losesSomebody ? Self.departurePatience : Self.patience
    ownSwitches[epoch.number] = now.advanced(by: patience)
  }

  /// The epoch is in use from now on.
  mutating func use(_ epoch: Epoch, now: Instant) {
    ownSwitches = ownSwitches.filter { $0.key > epoch.number }
    if epoch.mode == .fresh || freshSince == nil {
      freshSince = now
      isAgeTold = false
    }
  }

  /// The epoch is of no use any longer.
  mutating func forget(_ epoch: UInt32) { ownSwitches[epoch] = nil }

  /// The next epoch that this device switches to by itself.
  mutating func takeDue(now: Instant) -> UInt32? {
    guard let due = ownSwitches.filter({ $0.value <= now }).keys.min() else { return nil }
    ownSwitches[due] = nil
    return due
  }

  // MARK: silence

  /// Decides whether this device sends, and reports what has changed. `confirmations` is for displaying the devices that it names.
  mutating func review(
    _ inUse: Epoch?, isBroken: Bool, watch: RosterWatch, own: OwnStay, known: KnownDevices,
    lettingIn: LettingIn, confirmations: Confirmations, now: Instant, into effects: inout [KeyEffect]
  ) {
    let causes: [SilenceCause]
    if isBroken {
      causes = [.brokenHistory]
    } else if let inUse {
      distrusted.judge(inUse, known)
      causes = self.causes(inUse, watch, known, now) { entry in
        ListedDevice(
          entry, watch: watch, known: known, lettingIn: lettingIn, confirmations: confirmations, epoch: inUse.number)
      }
    } else {
      causes = []
    }
    if causes != silence {
      silence = causes
      effects.append(.silence(causes))
    }
    if let inUse, causes.isEmpty {
      guard sending != inUse.number, let key = own.sendingKey(inUse) else { return }
      sending = inUse.number
      if inUse.number == 1 { securing.begin(now: now) }
      effects.append(.send(key))
    } else if sending != nil {
      sending = nil
      effects.append(.stopSending)
    }
  }

  private func causes(
    _ epoch: Epoch, _ watch: RosterWatch, _ known: KnownDevices, _ now: Instant, _ shown: (ListEntry) -> ListedDevice
  ) -> [SilenceCause] {
    var causes: [SilenceCause] = []
    if epoch.secret == nil { causes.append(.noKey) }
    // Devices that ring can open epoch 1, including those of people who never answer.
    if epoch.number == 1, !watch.hasOthers(on: epoch.list) { causes.append(.alone) }
    if epoch.number == 1, securing.isOver(now: now) { causes.append(.securing) }
    let unverified = known.unverified(in: epoch.list)
    if !unverified.isEmpty { causes.append(.unverified(unverified.map(known.pinned))) }
    let distrusted = distrusted.entries.filter { !watch.isAccepted($0) }
    for (isRevoked, cause) in [(true, SilenceCause.revoked), (false, SilenceCause.changedKeys)] {
      let devices = distrusted.filter { known.pins.isRevoked($0.user, $0.fingerprint.bytes) == isRevoked }
      if !devices.isEmpty { causes.append(cause(devices.map(shown))) }
    }
    let strangers = watch.stopping(.stranger, now: now)
    if !strangers.isEmpty { causes.append(.strangers(strangers.map(shown))) }
    let uninvited = watch.stopping(.uninvited, now: now)
    if !uninvited.isEmpty { causes.append(.uninvited(uninvited.map(shown))) }
    let departed = watch.stopping(.departed, now: now)
    if !departed.isEmpty { causes.append(.departed(departed.map(shown))) }
    if watch.isHeld { causes.append(.held) }
    return causes
  }

  // MARK: age

  /// Reports once that the key in use is old: its last fresh secret is then two rotations old. A ratchet does not make a secret
  /// younger.
  mutating func tellAge(isInUse: Bool, isBroken: Bool, now: Instant, into effects: inout [KeyEffect]) {
    guard let due = ageDue(isInUse: isInUse, isBroken: isBroken), due <= now else { return }
    isAgeTold = true
    effects.append(.refused(.keyTooOld))
  }

  private func ageDue(isInUse: Bool, isBroken: Bool) -> Instant? {
    guard isInUse, !isAgeTold, !isBroken else { return nil }
    return freshSince?.advanced(by: .seconds(60 * min(120, 2 * rotateMinutes)))
  }
}

/// The devices on a list in use that are revoked or have a key other than the one seen first. Most events change neither list nor pins.
private struct Distrusted: Sendable {
  private(set) var entries: [ListEntry] = []
  /// The epoch and the state of the pins by which they were judged.
  private var epoch: UInt32?
  private var pins = 0

  mutating func judge(_ epoch: Epoch, _ known: KnownDevices) {
    guard self.epoch != epoch.number || pins != known.pins.revision else { return }
    self.epoch = epoch.number
    pins = known.pins.revision
    entries = epoch.list.entries.filter(known.isDistrusted)
  }
}

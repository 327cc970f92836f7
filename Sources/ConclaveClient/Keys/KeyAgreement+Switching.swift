import Contract
import Crypto
import MediaModel

/// Secrets, and when this device sends under which.
extension KeyAgreement {
  /// How long the server may take for the switch to a secret that this device has, and to one that shuts somebody out.
  static let switchPatience: Duration = .seconds(10)
  static let departurePatience: Duration = .seconds(3)

  /// Keeps the first valid secret of an epoch.
  mutating func adopt(_ secret: SymmetricKey, for number: UInt32, now: Instant, into effects: inout [KeyEffect]) {
    guard !isBroken, let epoch = epochs[number], epoch.secret == nil, number >= current ?? 0 else { return }
    epochs[number]?.secret = secret
    if proposal?.epoch == number { proposal = nil }
    if missing?.epoch == number { missing = nil }
    install(number, into: &effects)
    if number == current {
      began(number, now: now)
    } else if number > 1 || current != nil {
      let patience = epoch.mode == .fresh && shutsOut(epoch) ? Self.departurePatience : Self.switchPatience
      ownSwitches[number] = now.advanced(by: patience)
    }
  }

  /// A device that is not on the list may hear the media that is sent now.
  private func shutsOut(_ epoch: Epoch) -> Bool {
    guard let inUse = current.flatMap({ epochs[$0] })?.list else { return false }
    return !epoch.list.changes(since: inUse).gone.isEmpty
  }

  mutating func follow(switchTo number: UInt32, now: Instant, into effects: inout [KeyEffect]) {
    guard !isBroken, number > current ?? 0 else { return }
    guard number <= newest else {
      // Its announcement was missed, or refused.
      awaitedSwitch = number
      askForList(into: &effects)
      return
    }
    guard let epoch = epochs[number] else { return }
    current = number
    ownSwitches = ownSwitches.filter { $0.key > number }
    for old in epochs.keys.sorted() where old < number {
      // The keys of the frames that are under way stay; the secret goes.
      epochs[old]?.secret = nil
      if retirements[old] == nil { retirements[old] = now.advanced(by: Self.overlap) }
    }
    watch.use(epoch.list, now: now)
    if epoch.mode == .fresh || freshSince == nil {
      freshSince = now
      isAgeTold = false
    }
    if epoch.secret != nil {
      missing = nil
      began(number, now: now)
    } else {
      // Whether its own envelopes counted only the server can say. That no other's came is no proof: the server forgets them when the next epoch begins.
      let isAnswerDue = proposal?.epoch == number && proposal?.isAwaited == true
      if missing?.epoch != number {
        missing = MissingKey(
          epoch: number, asked: 0,
          askAgain: now.advanced(by: isAnswerDue ? Self.requestInterval : spread(.milliseconds(500))))
      } else if missing?.askAgain == nil {
        missing?.askAgain = now.advanced(by: Self.requestInterval)
      }
      beginConfirming(epoch, now: now)
    }
    if let code { effects.append(.code(code)) }
    effects.append(.tilesChanged)
  }

  /// The epoch in use has its secret.
  private mutating func began(_ number: UInt32, now: Instant) {
    guard let epoch = epochs[number] else { return }
    if epoch.mode == .fresh, number > 1 { refreshDue = true }
    beginConfirming(epoch, now: now)
  }

  mutating func askForMissingKey(now: Instant, into effects: inout [KeyEffect]) {
    guard var wanted = missing else { return }
    guard epochs[wanted.epoch] != nil, epochs[wanted.epoch]?.secret == nil else {
      missing = nil
      return
    }
    // The server forgets an epoch's envelopes when the next is announced, and that one brings a key.
    guard wanted.epoch == newest else {
      missing = nil
      return
    }
    let isInUse = wanted.epoch <= current ?? 0
    // Before the switch a leader may still be looked for: the server keeps one request until the key is there.
    guard isInUse || wanted.asked == 0 else {
      missing?.askAgain = nil
      return
    }
    guard wanted.asked < Self.requestLimit else {
      missing = nil
      if untrusted[wanted.epoch] == nil { refuse(.keyWithheld, into: &effects) }
      return
    }
    wanted.asked += 1
    wanted.askAgain = now.advanced(by: Self.requestInterval)
    missing = wanted
    // An envelope that waits for the person's trust is as good as another one.
    guard untrusted[wanted.epoch] == nil else { return }
    effects.append(.request(.inCall(call, .requestKey(RequestKey(epoch: wanted.epoch)))))
  }

  /// This device's own key in an epoch, from its own values alone.
  func sendingKey(_ epoch: Epoch) -> SendingKey? {
    let own = SenderIdentity(fingerprint: identity.fingerprint, joinId: join.joinId.bytes)
    guard participant > 0, let derivation = epoch.derivation(call) else { return nil }
    return SendingKey(
      epoch: epoch.number, participant: participant, joinId: own.joinId,
      baseKey: derivation.baseKey(of: participant, own))
  }

  /// Decides whether this device sends, asks what has to be asked for that, and tells what has changed.
  mutating func settle(now: Instant, into effects: inout [KeyEffect]) {
    if watch.takeQuestion(now: now) {
      effects.append(.askState)
      listing = newest
      effects.append(.request(.inCall(call, .listKeys(ListKeys(since: newest > 0 ? newest : nil)))))
    }
    tellTiles(now: now, into: &effects)
    if let due = ageDue, due <= now {
      isAgeTold = true
      refuse(.keyTooOld, into: &effects)
    }
    tellConfirmation(now: now, into: &effects)
    let causes = silenceCauses(now: now)
    if causes != silence {
      silence = causes
      effects.append(.silence(causes))
    }
    if let current, causes.isEmpty, let epoch = epochs[current] {
      guard sendingEpoch != current, let key = sendingKey(epoch) else { return }
      sendingEpoch = current
      if current == 1 { securing.begin(now: now) }
      effects.append(.send(key))
    } else if sendingEpoch != nil {
      sendingEpoch = nil
      effects.append(.stopSending)
    }
  }

  private mutating func silenceCauses(now: Instant) -> [SilenceCause] {
    if isBroken { return [.brokenHistory] }
    guard let current, let epoch = epochs[current] else { return [] }
    var causes: [SilenceCause] = []
    if epoch.secret == nil { causes.append(.noKey) }
    // Devices that ring can open epoch 1, also those of people who never answer.
    if current == 1, !watch.hasOthers(on: epoch.list) { causes.append(.alone) }
    if current == 1, securing.isOver(now: now) { causes.append(.securing) }
    let unverified = unverified(in: epoch.list)
    if !unverified.isEmpty { causes.append(.unverified(unverified.map(pinned))) }
    judgeDistrusted(epoch)
    let distrusted = distrusted.entries.filter { !watch.isAccepted($0) }
    for (isRevoked, cause) in [(true, SilenceCause.revoked), (false, SilenceCause.changedKeys)] {
      let devices = distrusted.filter { pins.isRevoked($0.user, $0.fingerprint.bytes) == isRevoked }
      if !devices.isEmpty { causes.append(cause(devices.map { listed($0) })) }
    }
    let strangers = watch.stopping(.stranger, now: now)
    if !strangers.isEmpty { causes.append(.strangers(strangers.map { listed($0) })) }
    let departed = watch.stopping(.departed, now: now)
    if !departed.isEmpty { causes.append(.departed(departed.map { listed($0) })) }
    if watch.isHeld { causes.append(.held) }
    return causes
  }

  /// When the last fresh secret is two rotations old. A ratchet makes no secret younger.
  var ageDue: Instant? {
    guard current != nil, !isAgeTold, !isBroken else { return nil }
    return freshSince?.advanced(by: .seconds(60 * min(120, 2 * rotateMinutes)))
  }
}

/// How long this device may send under epoch 1, whose key devices have that only rang: 10 s with signaling, 60 s in all, from its first frame.
struct SecuringTimer: Sendable {
  static let connectedTime: Duration = .seconds(10)
  static let time: Duration = .seconds(60)

  private var began: Instant?
  private var isConnected = true
  private var connectedSince: Instant?
  private var connected: Duration = .zero

  mutating func begin(now: Instant) {
    guard began == nil else { return }
    began = now
    connectedSince = isConnected ? now : nil
  }

  mutating func signaling(_ isConnected: Bool, now: Instant) {
    guard isConnected != self.isConnected else { return }
    self.isConnected = isConnected
    if let connectedSince { connected += connectedSince.duration(to: now) }
    connectedSince = isConnected && began != nil ? now : nil
  }

  func isOver(now: Instant) -> Bool { due.map { $0 <= now } ?? false }

  var due: Instant? {
    guard let began else { return nil }
    let inAll = began.advanced(by: Self.time)
    guard let connectedSince else { return connected >= Self.connectedTime ? began : inAll }
    return min(inAll, connectedSince.advanced(by: Self.connectedTime - connected))
  }
}

import Contract
import Crypto
import MediaModel

/// Decides which devices of a list get keys and are heard, and how a person is warned of the others.
extension KeyAgreement {
  /// The reason why a listed device gets no keys; nil when there is none.
  func problem(of entry: ListEntry) -> KeyWarning.Problem? {
    guard entry.address != identity.address else { return nil }
    guard !pins.isRevoked(entry.user, entry.fingerprint.bytes) else { return .revoked }
    let level = pins.level(of: entry.address, entry.fingerprint.bytes)
    guard level > .new else { return .changedKey }
    guard trust == .firstUse || level >= .vouched else { return .unverified }
    guard directory.contains(entry.fingerprint) else { return .unknownKeys }
    guard let key = entry.joinKey else { return nil }
    return JoinCredentials.algorithms.contains(key.alg) ? nil : .joinKeyNotSigned
  }

  /// Whether its frames and envelopes are to be opened: an unverified device may speak.
  func isHeard(_ entry: ListEntry) -> Bool {
    entry.address == identity.address
      || pins[entry.address]?.fingerprint == entry.fingerprint.bytes && directory.contains(entry.fingerprint)
        && !pins.isRevoked(entry.user, entry.fingerprint.bytes)
  }

  /// Devices that may be given the list's key and that nobody has verified: with `KeyTrust.verifiedOnly` nothing is sent under it. A device of which nothing
  /// is known is one of them.
  func unverified(in list: EpochList) -> [ListEntry] {
    guard trust == .verifiedOnly else { return [] }
    return list.entries.filter {
      $0.address != identity.address && pins.level(of: $0.address, $0.fingerprint.bytes) < .vouched
    }
  }

  /// Devices that others may have given the key to though this one would not.
  struct Distrusted: Sendable {
    var entries: [ListEntry] = []
    /// The epoch and the state of the pins that they were judged by.
    var epoch: UInt32?
    var pins = 0
  }

  /// Finds the devices on the list in use that are revoked or have another key than the one seen first. Most events change neither list nor pins.
  mutating func judgeDistrusted(_ epoch: Epoch) {
    guard distrusted.epoch != epoch.number || distrusted.pins != pins.revision else { return }
    distrusted.epoch = epoch.number
    distrusted.pins = pins.revision
    distrusted.entries = epoch.list.entries.filter {
      $0.address != identity.address
        && (pins.isRevoked($0.user, $0.fingerprint.bytes) || pins[$0.address]?.fingerprint != $0.fingerprint.bytes)
    }
  }

  func pinned(_ entry: ListEntry) -> PinnedDevice {
    PinnedDevice(
      user: entry.user.text, device: entry.device.text, fingerprint: entry.fingerprint.bytes,
      isVerified: pins.level(of: entry.address, entry.fingerprint.bytes) == .verified)
  }

  /// Pins devices that are seen for the first time.
  mutating func pinNew(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    let new = entries.filter { pins[$0.address] == nil && $0.address != identity.address }
    let wasKnown = Set(new.map(\.user).filter { pins.knows($0) || $0 == identity.address.user })
    for entry in new where pins[entry.address] == nil {
      if wasKnown.contains(entry.user) { warn(.newDevice, entry, into: &effects) }
      pins.pin(entry.address, entry.fingerprint.bytes)
      effects.append(.pin(entry.address, fingerprint: entry.fingerprint.bytes))
    }
  }

  /// Tells of every device that stays without keys. Keys that are being looked up are no problem yet.
  mutating func warnOfProblems(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    for entry in entries {
      guard let problem = problem(of: entry), problem != .unknownKeys || lookUps == 0 && lookUpDue == nil else {
        continue
      }
      warn(problem, entry, into: &effects)
    }
  }

  /// Notes a warning; false when the app has had it.
  package mutating func isNews(_ warning: KeyWarning) -> Bool { warned.insert(warning).inserted }

  mutating func warn(_ problem: KeyWarning.Problem, _ entry: ListEntry, into effects: inout [KeyEffect]) {
    let warning = KeyWarning(problem, entry)
    if isNews(warning) { effects.append(.warn(warning)) }
  }

  /// Whether the device signed the join key for this call and its stay. Checked once for each key.
  mutating func isSigned(_ key: JoinKey, of entry: ListEntry) -> Bool {
    guard let joinId = entry.joinId else { return false }
    let proof = JoinKeyProof(fingerprint: entry.fingerprint.bytes, joinId: joinId, key: key)
    if verifiedJoins.contains(proof) { return true }
    guard let keys = directory[entry.fingerprint], keys.signed(key, call: call, joinId: joinId.bytes) else {
      return false
    }
    verifiedJoins.insert(proof)
    return true
  }

  // MARK: what is learnt later

  /// Asks for the public keys of the newest list's devices that are not known: at once, or, in a large call whose people come one after another, for those of
  /// many newcomers at a time. The signer of an envelope is looked up at once in any case.
  mutating func lookUpSoon(in list: EpochList, isFirst: Bool, now: Instant, into effects: inout [KeyEffect]) {
    guard !unproven.isEmpty else { return }
    guard !isFirst, list.entries.count > Self.immediateLookUps else { return lookUpUnproven(into: &effects) }
    lookUpDue = lookUpDue ?? now.advanced(by: spread(.milliseconds(2 * list.entries.count)))
  }

  mutating func lookUpUnproven(into effects: inout [KeyEffect]) {
    lookUpDue = nil
    lookUp(unproven.filter { !directory.contains($0.fingerprint) }, into: &effects)
  }

  /// Asks for public keys that the list proves and that are not known here.
  mutating func lookUp(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    let unknown = entries.filter { !lookedUp.contains($0.fingerprint.bytes) }
    guard !unknown.isEmpty else { return }
    lookedUp.formUnion(unknown.map(\.fingerprint.bytes))
    lookUps += 1
    effects.append(.request(.people(.listDevices(ListDevices(users: Array(Set(unknown.map(\.user))).sorted())))))
  }

  mutating func learn(_ devices: Devices?, now: Instant, into effects: inout [KeyEffect]) {
    let entries = devices?.devices ?? []
    directory.learn(entries)
    lookUps = max(0, lookUps - 1)
    failedLookUps = devices == nil ? failedLookUps + 1 : 0
    if devices == nil, failedLookUps < Self.lookUpAttempts {
      // A server that is busy is no news about a device.
      lookedUp = []
      lookUpDue = lookUpDue ?? now.advanced(by: Self.lookUpPause + spread(Self.lookUpPause))
    }
    if lookUps == 0 { warnOfProblems(unproven, into: &effects) }
    if let list = epochs[newest]?.list {
      warnOfProblems(list.entries(of: Set(entries.map(\.user))), into: &effects)
    }
    installProven(into: &effects)
    openWaiting(now: now, into: &effects)
    openUntrusted(now: now, into: &effects)
  }

  /// Hands the cipher the keys of senders that are heard since their public keys are known. No device is heard less by that. While many come one after
  /// another a call has a list for each tenth of a second, and those without such a sender are passed over.
  private mutating func installProven(into effects: inout [KeyEffect]) {
    for number in epochs.keys.sorted() {
      guard let epoch = epochs[number] else { continue }
      examine(epoch.unheard.compactMap { epoch.list[$0] }, of: number)
      // Devices that rang have no number on the first list.
      if number == 1 || epochs[number]?.unheard != epoch.unheard { install(number, into: &effects) }
    }
  }

  /// Something new is known of any users.
  mutating func trustChanged(now: Instant, into effects: inout [KeyEffect]) {
    if let list = epochs[newest]?.list { warnOfProblems(list.entries, into: &effects) }
    exclude(nil, into: &effects)
    installAll(nil, into: &effects)
    openWaiting(now: now, into: &effects)
    openUntrusted(now: now, into: &effects)
  }

  /// A device that was refused has been looked at: it is heard, and may have the key.
  mutating func trusted(_ device: Device, now: Instant, into effects: inout [KeyEffect]) {
    warned = warned.filter { $0.user != device.user.text || $0.device != device.device.text }
    exclude([device.user], into: &effects)
    installAll([device.user], into: &effects)
    openUntrusted(now: now, into: &effects)
    guard let epoch = epochs[newest], epoch.list[device] != nil, epoch.secret == nil, newest == current else { return }
    // Its envelope may have been refused.
    missing = MissingKey(epoch: newest, asked: 0, askAgain: now)
    askForMissingKey(now: now, into: &effects)
  }

  /// Removes from the cipher the keys of devices that are no longer heard. Epochs whose secret is gone still open frames.
  private func exclude(_ users: Set<UserID>?, into effects: inout [KeyEffect]) {
    var excluded: Set<[UInt8]> = []
    for number in epochs.keys.sorted() {
      for entry in epochs[number]?.list.entries(of: users) ?? [] {
        guard directory.contains(entry.fingerprint), !isHeard(entry),
          excluded.insert(entry.fingerprint.bytes).inserted
        else { continue }
        effects.append(.exclude(fingerprint: entry.fingerprint.bytes))
      }
    }
  }

  /// Hands the cipher the keys of all senders that are heard now. The knowledge about these users has changed; nil means all users.
  private mutating func installAll(_ users: Set<UserID>?, into effects: inout [KeyEffect]) {
    for number in epochs.keys.sorted() {
      guard let entries = epochs[number]?.list.entries(of: users), !entries.isEmpty else { continue }
      examine(entries, of: number)
      install(number, into: &effects)
    }
  }

  /// Works out anew which of these entries of an epoch are heard.
  mutating func examine(_ entries: [ListEntry], of number: UInt32) {
    for entry in entries where entry.participant > 0 {
      if isHeard(entry) {
        epochs[number]?.unheard.remove(entry.participant)
      } else {
        epochs[number]?.unheard.insert(entry.participant)
      }
    }
  }

  /// Hands the cipher an epoch's key and its senders that are heard.
  mutating func install(_ number: UInt32, into effects: inout [KeyEffect]) {
    guard let epoch = epochs[number], let derivation = epoch.derivation(call) else { return }
    // A device may have become known as a leader's recipient.
    examine(epoch.unheard.compactMap { epoch.list[$0] }, of: number)
    let unheard = epochs[number]?.unheard ?? []
    // Never an own entry, whatever number the list gives it: a member cannot make this device take its own frames for another's.
    let own = [participant, epoch.list[identity.address]?.participant ?? participant]
    let senders = Senders(of: epoch.list, without: unheard.union(own), joined: joinedSenders(of: epoch))
    effects.append(.install(EpochKeys(epoch: number, derivation: derivation, senders: senders)))
  }

  /// Devices that rang have no number and joinId on epoch 1's list: they send with those that they joined with, as `call.member` tells; numbers and joins
  /// that are taken are refused.
  private func joinedSenders(of epoch: Epoch) -> [ParticipantNumber: SenderIdentity] {
    guard epoch.number == 1 else { return [:] }
    var senders: [ParticipantNumber: SenderIdentity] = [:]
    var joins = Set(epoch.list.entries.compactMap { $0.joinId?.bytes }).union([join.joinId.bytes])
    // In a large call most have joined by a link, and are not on the first list.
    let rung = joinedDevices.values.filter { epoch.list[$0.device]?.participant == 0 }
    for joined in rung.sorted(by: { $0.participant < $1.participant }) {
      guard let entry = epoch.list[joined.device], entry.address != identity.address,
        joined.participant != participant, epoch.list[joined.participant] == nil, joins.insert(joined.joinId).inserted,
        isHeard(entry)
      else { continue }
      senders[joined.participant] = SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: joined.joinId)
    }
    return senders
  }
}

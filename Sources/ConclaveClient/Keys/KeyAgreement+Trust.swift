import Contract
import Crypto
import MediaModel

/// Which devices of a list get keys and are heard, and what a person is told of the others.
extension KeyAgreement {
  /// What stands between a listed device and its keys; nil when nothing does.
  mutating func problem(of entry: ListEntry) -> KeyWarning.Problem? {
    guard entry.address != identity.address else { return nil }
    guard let pin = pins[entry.address], pin.fingerprint == entry.fingerprint.bytes else { return .changedKey }
    return trust == .verifiedOnly && !pin.isVerified ? .unverified : doubt(of: entry)
  }

  /// Whether its frames are to be opened: who is not verified may speak.
  mutating func isHeard(_ entry: ListEntry) -> Bool {
    entry.address == identity.address
      || pins[entry.address]?.fingerprint == entry.fingerprint.bytes && doubt(of: entry) == nil
  }

  /// Why the device's own words do not prove the entry.
  private mutating func doubt(of entry: ListEntry) -> KeyWarning.Problem? {
    guard directory[entry.fingerprint] != nil else { return .unknownKeys }
    if let key = entry.joinKey, !isSigned(key, of: entry) { return .joinKeyNotSigned }
    return nil
  }

  /// Whether this device may send under the epoch's key: whoever is on its list may be given it by others.
  func maySend(under epoch: Epoch) -> Bool {
    trust == .firstUse
      || epoch.list.entries.allSatisfy { entry in
        let pin = pins[entry.address]
        return entry.address == identity.address
          || pin?.isVerified == true && pin?.fingerprint == entry.fingerprint.bytes
      }
  }

  /// Pins devices that are seen for the first time.
  mutating func pinNew(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    let known = entries.filter { pins.knows($0.user) || $0.user == identity.address.user }
    let wasKnown = Set(known.map(\.user))
    for entry in entries where pins[entry.address] == nil && entry.address != identity.address {
      if wasKnown.contains(entry.user) { warn(.newDevice, entry, into: &effects) }
      pins.pin(entry.address, entry.fingerprint.bytes)
      effects.append(.pin(entry.address, fingerprint: entry.fingerprint.bytes))
    }
  }

  /// Tells of every device that stays without keys. Keys that are being looked up are no problem yet.
  mutating func warnOfProblems(_ list: EpochList, into effects: inout [KeyEffect]) {
    for entry in list.entries {
      guard let problem = problem(of: entry), problem != .unknownKeys || lookUps == 0 else { continue }
      warn(problem, entry, into: &effects)
    }
  }

  /// Notes a warning; false when the app has had it.
  package mutating func isNews(_ warning: KeyWarning) -> Bool { warned.insert(warning).inserted }

  private mutating func warn(_ problem: KeyWarning.Problem, _ entry: ListEntry, into effects: inout [KeyEffect]) {
    let warning = KeyWarning(problem, entry)
    if isNews(warning) { effects.append(.warn(warning)) }
  }

  private mutating func isSigned(_ key: JoinKey, of entry: ListEntry) -> Bool {
    let proof = JoinKeyProof(fingerprint: entry.fingerprint.bytes, joinId: entry.joinId, key: key)
    if verifiedJoins.contains(proof) { return true }
    guard let keys = directory[entry.fingerprint], let joinId = entry.joinId?.bytes,
      keys.signed(key, joinId: joinId)
    else { return false }
    verifiedJoins.insert(proof)
    return true
  }

  // MARK: what is learnt later

  /// Asks for public keys that the list proves and that are not known here.
  mutating func lookUp(_ list: EpochList, into effects: inout [KeyEffect]) {
    let unknown = list.entries.filter {
      directory[$0.fingerprint] == nil && !lookedUp.contains($0.fingerprint.bytes)
    }
    guard !unknown.isEmpty else { return }
    lookedUp.formUnion(unknown.map(\.fingerprint.bytes))
    lookUps += 1
    effects.append(.request(.listDevices(ListDevices(users: Array(Set(unknown.map(\.user))).sorted()))))
  }

  mutating func learn(_ entries: [DeviceEntry], now: Instant, into effects: inout [KeyEffect]) {
    directory.learn(entries)
    lookUps = max(0, lookUps - 1)
    let envelopes = waiting
    waiting = []
    if let list = epochs[newest]?.list { warnOfProblems(list, into: &effects) }
    installAll(into: &effects)
    for (envelope, delivery) in envelopes { take(envelope, delivery, into: &effects) }
  }

  mutating func seat(_ devices: [SeatedDevice], into effects: inout [KeyEffect]) {
    for device in devices where device.joinId.bytes.count == 16 { seats[device.device] = device }
    if let first = epochs[1], first.list.entries.contains(where: { $0.participant == 0 }) { install(1, into: &effects) }
  }

  /// A device that was refused has been looked at: it is heard, and may have the key.
  mutating func trusted(_ device: Device, now: Instant, into effects: inout [KeyEffect]) {
    warned = warned.filter { $0.user != device.user.text || $0.device != device.device.text }
    installAll(into: &effects)
    guard let epoch = epochs[newest], epoch.list[device] != nil else { return }
    if epoch.secret == nil, newest == current {
      // Its envelope may have been refused.
      missing = MissingKey(epoch: newest, asked: 0, askAgain: now)
      askForMissingKey(now: now, into: &effects)
    }
    if let current { send(under: current, into: &effects) }
  }

  /// Hands the cipher the keys of everyone who is heard now.
  private mutating func installAll(into effects: inout [KeyEffect]) {
    for number in epochs.keys.sorted() { install(number, into: &effects) }
  }

  mutating func install(_ number: UInt32, into effects: inout [KeyEffect]) {
    guard let epoch = epochs[number], epoch.secret != nil else { return }
    let heard = Set(epoch.list.entries.filter { isHeard($0) }.map(\.address))
    if let keys = epoch.keys(call: call, seats: seats, where: { heard.contains($0.address) }) {
      effects.append(.install(keys))
    }
  }

  /// Sends under the key in use, if it is there and everyone who may hold it is trusted with it.
  mutating func send(under number: UInt32, into effects: inout [KeyEffect]) {
    guard let epoch = epochs[number], epoch.secret != nil else { return }
    effects.append(maySend(under: epoch) ? .send(epoch: number) : .stopSending)
  }
}

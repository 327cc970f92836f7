import Contract
import MediaModel

/// The knowledge of this device about others. It judges the devices of a list: which get keys, which are heard, and how a person is warned about the others
/// (protocol sections 5.11 and 5.12).
package struct KnownDevices: Sendable {
  /// This device.
  let own: DeviceIdentity
  let trust: KeyTrust
  /// The pins of other devices, shared by all calls: the caller lends them for each input.
  package var pins: Pins
  /// Public keys by the fingerprint that proves them, lent likewise.
  package var directory: KnownKeys
  /// Listed devices whose users nobody let in, except those to which the person sends: they get no keys, and their envelopes wait.
  var uninvited: Set<Device> = []
  /// Join keys whose signature has been checked.
  private var verifiedJoins: Set<JoinKeyProof> = []

  private struct JoinKeyProof: Hashable, Sendable {
    var fingerprint: [UInt8]
    var joinId: Base64Bytes
    var key: JoinKey
  }

  init(_ own: DeviceIdentity, pins: Pins, trust: KeyTrust, directory: KnownKeys) {
    self.own = own
    self.pins = pins
    self.trust = trust
    self.directory = directory
    // Writing would copy the caller's directory.
    if !directory.contains(Base64Bytes(own.fingerprint)) { self.directory.learn(own.publicKeys) }
  }

  /// The reason why a listed device gets no keys; nil if there is none.
  func problem(of entry: ListEntry) -> KeyWarning.Problem? {
    guard entry.address != own.address else { return nil }
    guard !pins.isRevoked(entry.user, entry.fingerprint.bytes) else { return .revoked }
    let level = pins.level(of: entry.address, entry.fingerprint.bytes)
    guard level > .new else { return .changedKey }
    guard trust == .firstUse || level >= .vouched else { return .unverified }
    guard directory.contains(entry.fingerprint) else { return .unknownKeys }
    if let key = entry.joinKey, !JoinCredentials.algorithms.contains(key.alg) { return .joinKeyNotSigned }
    return uninvited.contains(entry.address) ? .uninvited : nil
  }

  /// Whether its frames and envelopes are opened: an unverified device may speak.
  func isHeard(_ entry: ListEntry) -> Bool {
    entry.address == own.address
      || pins[entry.address]?.fingerprint == entry.fingerprint.bytes && directory.contains(entry.fingerprint)
        && !pins.isRevoked(entry.user, entry.fingerprint.bytes)
  }

  /// Whether it may provide a key, so that its envelopes are opened.
  func isTrustedWithKeys(_ entry: ListEntry) -> Bool { isHeard(entry) && !uninvited.contains(entry.address) }

  /// Devices that may be given the list's key and that nobody has verified: with `KeyTrust.verifiedOnly` nothing is sent under it. A device about which
  /// nothing is known is one of them.
  func unverified(in list: EpochList) -> [ListEntry] {
    guard trust == .verifiedOnly else { return [] }
    return list.entries.filter {
      $0.address != own.address && pins.level(of: $0.address, $0.fingerprint.bytes) < .vouched
    }
  }

  /// A listed device that is revoked, or has a key other than the one seen first: others may have given it the key although this device would
  /// not.
  func isDistrusted(_ entry: ListEntry) -> Bool {
    entry.address != own.address
      && (pins.isRevoked(entry.user, entry.fingerprint.bytes)
        || pins[entry.address]?.fingerprint != entry.fingerprint.bytes)
  }

  func pinned(_ entry: ListEntry) -> PinnedDevice {
    PinnedDevice(
      user: entry.user.text, device: entry.device.text, fingerprint: entry.fingerprint.bytes,
      isVerified: pins.level(of: entry.address, entry.fingerprint.bytes) == .verified)
  }

  /// Pins devices that are seen for the first time.
  mutating func pinNew(_ entries: [ListEntry], warnings: inout KeyWarnings, into effects: inout [KeyEffect]) {
    let new = entries.filter { pins[$0.address] == nil && $0.address != own.address }
    let wasKnown = Set(new.map(\.user).filter { pins.knows($0) || $0 == own.address.user })
    for entry in new where pins[entry.address] == nil {
      if wasKnown.contains(entry.user) { warnings.warn(.newDevice, entry, into: &effects) }
      pins.pin(entry.address, entry.fingerprint.bytes)
      effects.append(.pin(entry.address, fingerprint: entry.fingerprint.bytes))
    }
  }

  /// Warns about every device that stays without keys. Keys that are being looked up are not a problem yet.
  func warnOfProblems(
    _ entries: [ListEntry], isLookingUp: Bool, warnings: inout KeyWarnings, into effects: inout [KeyEffect]
  ) {
    for entry in entries {
      // The roster watch warns about users whom nobody let in.
      guard let problem = problem(of: entry), problem != .uninvited, problem != .unknownKeys || !isLookingUp else {
        continue
      }
      warnings.warn(problem, entry, into: &effects)
    }
  }

  /// Whether the device signed the join key for this call and its stay. Checked once for each key.
  mutating func isSigned(_ key: JoinKey, of entry: ListEntry, call: CallID) -> Bool {
    guard let joinId = entry.joinId else { return false }
    let proof = JoinKeyProof(fingerprint: entry.fingerprint.bytes, joinId: joinId, key: key)
    if verifiedJoins.contains(proof) { return true }
    guard let keys = directory[entry.fingerprint], keys.signed(key, call: call, joinId: joinId.bytes) else {
      return false
    }
    verifiedJoins.insert(proof)
    return true
  }
}

import Contract
import MediaModel
import Octets

/// A device whose signatures count for a recording: its keys are those by which this device knows it.
struct RecordingSigner: Sendable {
  var address: Device
  /// The hash over all its keys, 32 bytes.
  var fingerprint: [UInt8]
  var signKey: SignKey
  var trust: TrustLevel

  init(address: Device, fingerprint: [UInt8], signKey: SignKey, trust: TrustLevel) {
    self.address = address
    self.fingerprint = fingerprint
    self.signKey = signKey
    self.trust = trust
  }

  /// This device.
  init(_ identity: DeviceIdentity) {
    self.init(
      address: identity.address, fingerprint: identity.fingerprint, signKey: SignKey(identity.publicKeys),
      trust: .verified)
  }

  func signed(_ message: [UInt8], _ algorithm: String, _ signature: Base64Bytes) -> Bool {
    algorithm == signKey.algorithm
      && SignAlgorithm(rawValue: algorithm)?.verifies(signature.bytes, of: message, by: signKey.publicKey) == true
  }
}

/// This device's knowledge of those who sign recordings: its own keys, and the pins.
struct KnownSigners: Sendable {
  let identity: DeviceIdentity
  let pins: Pins

  /// A device that a recording names with its keys; nil if they do not belong together, if they are others than those seen first, or if they are revoked.
  func signer(_ person: RecordedPerson) -> RecordingSigner? {
    let address = Device(user: person.user, device: person.device)
    guard let keys = DeviceKeys(address, keys: person.keys), keys.fingerprint == person.fingerprint.bytes else {
      return nil
    }
    return signer(keys)
  }

  func signer(_ keys: DeviceKeys) -> RecordingSigner? {
    if keys.address == identity.address {
      return keys.fingerprint == identity.fingerprint ? RecordingSigner(identity) : nil
    }
    guard pins[keys.address].map({ $0.fingerprint == keys.fingerprint }) ?? true,
      !pins.isRevoked(keys.address.user, keys.fingerprint)
    else { return nil }
    return RecordingSigner(
      address: keys.address, fingerprint: keys.fingerprint, signKey: SignKey(keys),
      trust: pins.level(of: keys.address, keys.fingerprint))
  }

  /// A device that a recording only names: this one, or a pinned one whose sign key is known.
  func signer(_ address: Device) -> RecordingSigner? {
    if address == identity.address { return RecordingSigner(identity) }
    guard let pin = pins[address], let key = pin.signKey, !pins.isRevoked(address.user, pin.fingerprint) else {
      return nil
    }
    return RecordingSigner(
      address: address, fingerprint: pin.fingerprint, signKey: key, trust: pins.level(of: address, pin.fingerprint))
  }
}

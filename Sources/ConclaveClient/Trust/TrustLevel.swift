import Contract
import MediaModel
import Octets

/// How certain a viewer may be that a device is its user's (protocol section 5, "Vouching").
public enum TrustLevel: Int, Sendable, Comparable {
  /// Not seen before, or under another fingerprint.
  case new
  /// It has the keys that were seen first.
  case known
  /// A verified device of the same user has vouched for it.
  case vouched
  /// A person has compared it.
  case verified

  /// The more certain level is greater.
  public static func < (a: TrustLevel, b: TrustLevel) -> Bool { a.rawValue < b.rawValue }
}

/// A device's signed statement about a device of its user: that it is the user's, or that it must no longer be trusted. Store it with the pins: a server
/// may hide it later.
public struct TrustStatement: Sendable, Hashable, Codable {
  /// Whether it speaks for the device or against it.
  public enum Kind: String, Sendable, Hashable, Codable { case vouch, revoke }

  /// Whether it speaks for the device or against it.
  public var kind: Kind
  /// The user whose devices both are.
  public var user: String
  /// The device that it is about.
  public var device: String
  /// The fingerprint of the device that it is about.
  public var fingerprint: [UInt8]
  /// The device that signed.
  public var signer: String
  /// The fingerprint of the device that signed.
  public var signerFingerprint: [UInt8]
  /// When it was signed, in milliseconds since 1970 by the signer's clock.
  public var at: Int64
  /// The signature's algorithm.
  public var algorithm: String
  /// The signature.
  public var signature: [UInt8]

  /// A statement that the app stored.
  public init(
    kind: Kind, user: String, device: String, fingerprint: [UInt8], signer: String, signerFingerprint: [UInt8],
    at: Int64, algorithm: String, signature: [UInt8]
  ) {
    self.kind = kind
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
    self.signer = signer
    self.signerFingerprint = signerFingerprint
    self.at = at
    self.algorithm = algorithm
    self.signature = signature
  }

  init(_ vouch: Vouch, user: UserID) {
    self.init(
      kind: .vouch, user: user.text, device: vouch.device.text, fingerprint: vouch.fingerprint.bytes,
      signer: vouch.by.text, signerFingerprint: vouch.byFingerprint.bytes, at: vouch.at.milliseconds,
      algorithm: vouch.sigAlg, signature: vouch.signature.bytes)
  }

  init(_ revoke: Revoke) {
    self.init(
      kind: .revoke, user: revoke.user.text, device: revoke.device.text, fingerprint: revoke.fingerprint.bytes,
      signer: revoke.by.text, signerFingerprint: revoke.byFingerprint.bytes, at: revoke.at.milliseconds,
      algorithm: revoke.sigAlg, signature: revoke.signature.bytes)
  }

  /// Signed by `identity` about another device of its user.
  init(_ kind: Kind, device: String, fingerprint: [UInt8], at: Timestamp, by identity: DeviceIdentity) {
    self.init(
      kind: kind, user: identity.user, device: device, fingerprint: fingerprint, signer: identity.device,
      signerFingerprint: identity.fingerprint, at: at.milliseconds, algorithm: SignAlgorithm.es256.rawValue,
      signature: [])
    signature = identity.sign(transcript)
  }

  /// The signed bytes.
  var transcript: [UInt8] {
    var transcript = Transcript(kind == .vouch ? "conclave-vouch-v1" : "conclave-revoke-v1")
    transcript.appendPrefixed(user)
    transcript.append(signerFingerprint)
    transcript.append(fingerprint)
    transcript.append(UInt64(bitPattern: at))
    return transcript.bytes
  }

  func isSigned(by key: SignKey) -> Bool {
    algorithm == key.algorithm
      && SignAlgorithm(rawValue: algorithm)?.verifies(signature, of: transcript, by: key.publicKey) == true
  }
}

/// A device's public sign key, stored with its fingerprint: it proves statements of a device that the server no longer lists.
struct SignKey: Sendable, Hashable {
  var algorithm: String
  var publicKey: [UInt8]

  init(_ keys: DeviceKeys) {
    algorithm = keys.sign.alg
    publicKey = keys.sign.publicKey.bytes
  }

  init(algorithm: String, publicKey: [UInt8]) {
    self.algorithm = algorithm
    self.publicKey = publicKey
  }
}

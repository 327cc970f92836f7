import Contract
import Crypto
import Foundation
import MediaModel
import Octets
import Recording

/// The key pair of one recording. Its readers have the private half; keys and notes of the recording are sealed to the public one.
struct RecordingKey: Sendable {
  static let scalarBytes = 32
  private static let grantLabel = Array("conclave-grant-v1".utf8)

  let privateKey: P256.KeyAgreement.PrivateKey

  /// A new pair.
  init(using generator: inout some RandomNumberGenerator) {
    while true {
      // One of 2^32 scalars is too large.
      let scalar = (0..<Self.scalarBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
      guard let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: scalar) else { continue }
      privateKey = key
      return
    }
  }

  /// nil unless `scalar` is the private half of `publicKey` (SPKI).
  init?(scalar: [UInt8], publicKey: [UInt8]) {
    guard scalar.count == Self.scalarBytes,
      let key = try? P256.KeyAgreement.PrivateKey(rawRepresentation: scalar),
      let stated = try? P256.KeyAgreement.PublicKey(derRepresentation: publicKey),
      key.publicKey.x963Representation == stated.x963Representation
    else { return nil }
    privateKey = key
  }

  /// SPKI.
  var publicKey: [UInt8] { Array(privateKey.publicKey.derRepresentation) }

  // MARK: grants

  /// The private half, sealed to `device` and signed; nil if nothing can be sealed to its key here.
  func grant(
    to device: DeviceKeys, of statement: SignedStatement, at: Timestamp, by identity: DeviceIdentity
  ) -> RecordingGrant? {
    let publicKey = device.wrap.publicKey.bytes
    let scalar = Array(privateKey.rawRepresentation)
    let info = Self.grantLabel + statement.id.bytes
    guard
      let ciphertext = try? WrapAlgorithm(rawValue: device.wrap.alg)?.seal(scalar, to: publicKey, info: info)
    else { return nil }
    var grant = RecordingGrant(
      recording: statement.id, to: RecordingGrant.Holder(user: device.address.user, device: device.address.device),
      from: identity.address, key: Base64Bytes(Array(SHA256.hash(data: publicKey))), alg: device.wrap.alg,
      ciphertext: Base64Bytes(ciphertext), at: at, sigAlg: SignAlgorithm.es256.rawValue, signature: Base64Bytes([]))
    grant.signature = Base64Bytes(identity.sign(grant.transcript(of: statement.hash)))
    return grant
  }

  /// Opens a grant that `signer` has made for this device.
  init(
    opening grant: RecordingGrant, of statement: SignedStatement, as identity: DeviceIdentity,
    from signer: RecordingSigner
  ) throws(UnreadableRecording) {
    let own = identity.publicKeys
    guard grant.recording == statement.id, grant.to.user == own.address.user, grant.to.device == own.address.device,
      grant.key.bytes == Array(SHA256.hash(data: own.wrap.publicKey.bytes)), grant.from == signer.address,
      grant.alg == WrapAlgorithm.hpke.rawValue,
      signer.signed(grant.transcript(of: statement.hash), grant.sigAlg, grant.signature)
    else { throw .noKey }
    let info = Self.grantLabel + statement.id.bytes
    guard
      let scalar = try? SingleShotHPKE.open(grant.ciphertext.bytes, with: identity.wrapKey, info: info),
      // A server's own key in place of the starter's.
      let key = RecordingKey(scalar: scalar, publicKey: statement.publicKey)
    else { throw .noKey }
    self = key
  }

  // MARK: what is sealed to it

  /// Seals to the public half (SPKI) of a recording's key; nil if it is no point of P-256.
  static func seal(_ bytes: [UInt8], to publicKey: [UInt8], info: String, authenticating data: Transcript) -> [UInt8]? {
    guard let key = try? P256.KeyAgreement.PublicKey(derRepresentation: publicKey) else { return nil }
    return try? SingleShotHPKE.seal(bytes, to: key, info: Array(info.utf8), authenticating: data.bytes)
  }

  /// nil if it was not sealed to this key with exactly these values.
  func open(_ ciphertext: [UInt8], info: String, authenticating data: Transcript) -> [UInt8]? {
    try? SingleShotHPKE.open(ciphertext, with: privateKey, info: Array(info.utf8), authenticating: data.bytes)
  }
}

extension RecordingGrant {
  fileprivate func transcript(of statement: [UInt8]) -> [UInt8] {
    Transcript.grant(self, statement: statement, ciphertextHash: ciphertext.sha256).bytes
  }
}

extension Base64Bytes {
  var sha256: [UInt8] { Array(SHA256.hash(data: bytes)) }
}

extension RecordingKey: CustomStringConvertible { var description: String { "recording key" } }

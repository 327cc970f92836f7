import Crypto
import CryptoExtras

/// How a key is encrypted for a device (protocol section 5, "Device").
enum WrapAlgorithm: String, Sendable {
  case hpke = "HPKE-P256-SHA256-AES256GCM"
  case rsa = "RSA-OAEP-256"
  case ecies = "ECIES-P256-X963-SHA256-AESGCM"

  static let info = Array("conclave-envelope-v2".utf8)

  /// Encrypts `secret` to a public key (SPKI). Throws when the key is not of this algorithm, or too short.
  /// - Parameter info: HPKE's; the other algorithms have none.
  func seal(_ secret: [UInt8], to publicKey: [UInt8], info: [UInt8] = Self.info) throws -> [UInt8] {
    switch self {
    case .hpke:
      return try SingleShotHPKE.seal(
        secret, to: P256.KeyAgreement.PublicKey(derRepresentation: publicKey), info: info)
    case .rsa:
      // swift-crypto itself refuses keys below 2,048 bits, and has no label.
      let key = try _RSA.Encryption.PublicKey(derRepresentation: publicKey)
      return Array(try key.encrypt(secret, padding: .PKCS1_OAEP_SHA256))
    case .ecies:
      return try ECIES.seal(secret, to: P256.KeyAgreement.PublicKey(derRepresentation: publicKey))
    }
  }

  /// Opens what `seal` made with `.hpke` for the key's public half.
  static func open(
    _ ciphertext: [UInt8], with privateKey: P256.KeyAgreement.PrivateKey, info: [UInt8] = Self.info
  ) throws -> [UInt8] {
    try SingleShotHPKE.open(ciphertext, with: privateKey, info: info)
  }
}

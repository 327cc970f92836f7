import Crypto
import CryptoExtras
import Foundation

/// How a key is encrypted for a device (protocol section 5, "Device").
enum WrapAlgorithm: String, Sendable {
  case hpke = "HPKE-P256-SHA256-AES256GCM"
  case rsa = "RSA-OAEP-256"
  case ecies = "ECIES-P256-X963-SHA256-AESGCM"

  static let suite = HPKE.Ciphersuite.P256_SHA256_AES_GCM_256
  static let info = Data("conclave-envelope-v2".utf8)
  /// Bytes of an uncompressed P-256 point, which HPKE and ECIES put before the ciphertext.
  static let encapsulatedByteCount = 65

  /// Encrypts `secret` to a public key (SPKI). Throws when the key is not of this algorithm, or too short.
  func seal(_ secret: [UInt8], to publicKey: [UInt8]) throws -> [UInt8] {
    switch self {
    case .hpke:
      let key = try P256.KeyAgreement.PublicKey(derRepresentation: publicKey)
      var sender = try HPKE.Sender(recipientKey: key, ciphersuite: Self.suite, info: Self.info)
      let ciphertext = try sender.seal(secret)
      return Array(sender.encapsulatedKey) + ciphertext
    case .rsa:
      // swift-crypto itself refuses keys below 2,048 bits, and has no label.
      let key = try _RSA.Encryption.PublicKey(derRepresentation: publicKey)
      return Array(try key.encrypt(secret, padding: .PKCS1_OAEP_SHA256))
    case .ecies:
      return try ECIES.seal(secret, to: P256.KeyAgreement.PublicKey(derRepresentation: publicKey))
    }
  }

  /// Opens what `seal` made with `.hpke` for the key's public half.
  static func open(_ ciphertext: [UInt8], with privateKey: P256.KeyAgreement.PrivateKey) throws -> [UInt8] {
    guard ciphertext.count > encapsulatedByteCount else { throw KeyRefusal.envelopeNotReadable }
    var recipient = try HPKE.Recipient(
      privateKey: privateKey, ciphersuite: suite, info: info,
      encapsulatedKey: Data(ciphertext[..<encapsulatedByteCount]))
    return Array(try recipient.open(ciphertext[encapsulatedByteCount...]))
  }
}

import Crypto
import Foundation

/// One message by HPKE in base mode (RFC 9180 section 6.1): the encapsulated key, then the ciphertext with its tag. Anyone can make one, so what is opened counts
/// only with a signature over it.
enum SingleShotHPKE {
  static let suite = HPKE.Ciphersuite.P256_SHA256_AES_GCM_256
  /// Bytes of an uncompressed P-256 point, which HPKE and ECIES put before the ciphertext.
  static let encapsulatedByteCount = 65
  /// Bytes of the point and the tag.
  static let overhead = encapsulatedByteCount + 16

  /// - Parameters:
  ///   - info: says what is sealed.
  ///   - data: is authenticated with it.
  static func seal(
    _ plaintext: [UInt8], to key: P256.KeyAgreement.PublicKey, info: [UInt8], authenticating data: [UInt8] = []
  ) throws -> [UInt8] {
    var sender = try HPKE.Sender(recipientKey: key, ciphersuite: suite, info: Data(info))
    let ciphertext = try sender.seal(plaintext, authenticating: data)
    return Array(sender.encapsulatedKey) + ciphertext
  }

  /// Opens what `seal` made for the key's public half. Throws if anything differs.
  static func open(
    _ message: [UInt8], with key: P256.KeyAgreement.PrivateKey, info: [UInt8], authenticating data: [UInt8] = []
  ) throws -> [UInt8] {
    guard message.count > encapsulatedByteCount else { throw KeyRefusal.envelopeNotReadable }
    var recipient = try HPKE.Recipient(
      privateKey: key, ciphersuite: suite, info: Data(info),
      encapsulatedKey: Data(message[..<encapsulatedByteCount]))
    return Array(try recipient.open(message[encapsulatedByteCount...], authenticating: data))
  }
}

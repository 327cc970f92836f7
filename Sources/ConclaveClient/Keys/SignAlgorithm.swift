import Crypto
import CryptoExtras

/// How a device signs (protocol section 5, "Device"); signatures are as in JOSE (RFC 7518, RFC 8037).
enum SignAlgorithm: String, Sendable {
  case es256 = "ES256"
  case ps256 = "PS256"
  case edDSA = "EdDSA"

  /// Whether `signature` over `message` was made by the private half of `publicKey` (SPKI). A key of another kind verifies nothing.
  func verifies(_ signature: [UInt8], of message: [UInt8], by publicKey: [UInt8]) -> Bool {
    switch self {
    case .es256:
      guard let key = try? P256.Signing.PublicKey(derRepresentation: publicKey),
        let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
      else { return false }
      return key.isValidSignature(signature, for: SHA256.hash(data: message))
    case .ps256:
      guard let key = try? _RSA.Signing.PublicKey(derRepresentation: publicKey) else { return false }
      return key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: message), padding: .PSS)
    case .edDSA:
      guard publicKey.starts(with: Self.ed25519Prefix),
        let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey.dropFirst(Self.ed25519Prefix.count))
      else { return false }
      return key.isValidSignature(signature, for: message)
    }
  }

  /// The bytes before the 32 key bytes in an Ed25519 SPKI (RFC 8410 section 4).
  private static let ed25519Prefix: [UInt8] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
  ]
}

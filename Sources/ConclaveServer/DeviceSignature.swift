import Calls
import Crypto
import CryptoExtras

/// A device's signature over a word, as far as it lets somebody in (protocol section 5.13).
struct DeviceSignature {
  var bytes: [UInt8]
  var message: [UInt8]

  /// The size of an RSA key of 4,096 bits. Longer keys take so long to check that a member could make everybody wait.
  private static let maximumKeyBytes = 560
  private static let rsaBits = 2_048...4_096

  /// Whether it was made with the private half of `publicKey` (SPKI). A key of another kind, or of a size that clients do not verify, verifies nothing.
  func isValid(algorithm: String, publicKey: [UInt8]) -> Bool {
    guard publicKey.count <= Self.maximumKeyBytes else { return false }
    switch algorithm {
    case "ES256":
      guard let key = try? P256.Signing.PublicKey(derRepresentation: publicKey),
        let signature = try? P256.Signing.ECDSASignature(rawRepresentation: bytes)
      else { return false }
      return key.isValidSignature(signature, for: SHA256.hash(data: message))
    case "PS256":
      guard let key = try? _RSA.Signing.PublicKey(derRepresentation: publicKey),
        Self.rsaBits.contains(key.keySizeInBits)
      else { return false }
      return key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: bytes), for: SHA256.hash(data: message), padding: .PSS)
    case "EdDSA":
      let prefix = Hashing.ed25519Prefix
      guard publicKey.count == prefix.count + 32, publicKey.starts(with: prefix),
        let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey.dropFirst(prefix.count))
      else { return false }
      return key.isValidSignature(bytes, for: message)
    default: return false
    }
  }
}

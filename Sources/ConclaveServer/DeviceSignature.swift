import CallMessages
import Cryptography

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
    case "ES256": return ECPublicKey(p256SPKI: publicKey)?.isSignature(bytes, of: message, hash: .sha256) ?? false
    case "PS256":
      guard let key = RSAPublicKey(spki: publicKey), Self.rsaBits.contains(key.bitCount) else { return false }
      return key.isSignature(bytes, of: message, hash: .sha256, padding: .pss)
    case "EdDSA": return Ed25519PublicKey(spki: publicKey)?.isSignature(bytes, of: message) ?? false
    default: return false
    }
  }
}

extension Hashing {
  /// The functions of OpenSSL.
  static var sha256: Hashing {
    Hashing(
      digest: { HashAlgorithm.sha256.digest(of: $0) },
      authenticationCode: { HashAlgorithm.sha256.authenticationCode(of: $0, key: SecretKey($1)) },
      isValid: { HashAlgorithm.sha256.isAuthenticationCode($0, of: $1, key: SecretKey($2)) },
      verifies: { DeviceSignature(bytes: $0, message: $1).isValid(algorithm: $2, publicKey: $3) })
  }
}

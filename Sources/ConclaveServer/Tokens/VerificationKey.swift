import Crypto
import CryptoExtras
import Foundation

/// A key with which signatures of tokens are checked. Every length that a signer chooses is checked before the library sees
/// it.
enum VerificationKey: Sendable {
  case secret(SymmetricKey)
  case rsa(_RSA.Signing.PublicKey)
  case p256(P256.Signing.PublicKey)
  case p384(P384.Signing.PublicKey)
  case p521(P521.Signing.PublicKey)
  case ed25519(Curve25519.Signing.PublicKey)

  /// Whether the algorithm belongs to this key's type. A secret is as long as the digest (RFC 7518 section 3.2).
  func accepts(_ algorithm: TokenAlgorithm) -> Bool {
    switch (self, algorithm) {
    case (.secret(let key), .hs256): key.bitCount >= 256
    case (.secret(let key), .hs384): key.bitCount >= 384
    case (.secret(let key), .hs512): key.bitCount >= 512
    case (.rsa, .rs256), (.rsa, .rs384), (.rsa, .rs512), (.rsa, .ps256), (.rsa, .ps384), (.rsa, .ps512): true
    case (.p256, .es256), (.p384, .es384), (.p521, .es512), (.ed25519, .edDSA): true
    default: false
    }
  }

  /// - Returns: whether `signature` was made by this key over `bytes`, with an algorithm that the key accepts.
  func isSignature(_ signature: [UInt8], for bytes: ArraySlice<UInt8>, by algorithm: TokenAlgorithm) -> Bool {
    guard accepts(algorithm) else { return false }
    switch self {
    case .secret(let key):
      return switch algorithm {
      case .hs256: HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      case .hs384: HMAC<SHA384>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      default: HMAC<SHA512>.isValidAuthenticationCode(signature, authenticating: bytes, using: key)
      }
    case .rsa(let key):
      guard signature.count == (key.keySizeInBits + 7) / 8 else { return false }
      let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
      let padding = _RSA.Signing.Padding.self
      return switch algorithm {
      case .rs256: key.isValidSignature(signature, for: SHA256.hash(data: bytes), padding: padding.insecurePKCS1v1_5)
      case .rs384: key.isValidSignature(signature, for: SHA384.hash(data: bytes), padding: padding.insecurePKCS1v1_5)
      case .rs512: key.isValidSignature(signature, for: SHA512.hash(data: bytes), padding: padding.insecurePKCS1v1_5)
      case .ps256: key.isValidSignature(signature, for: SHA256.hash(data: bytes), padding: padding.PSS)
      case .ps384: key.isValidSignature(signature, for: SHA384.hash(data: bytes), padding: padding.PSS)
      default: key.isValidSignature(signature, for: SHA512.hash(data: bytes), padding: padding.PSS)
      }
    // R followed by S (RFC 7518 section 3.4); no other length is a signature.
    case .p256(let key):
      let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
      return signature.map { key.isValidSignature($0, for: SHA256.hash(data: bytes)) } ?? false
    case .p384(let key):
      let signature = try? P384.Signing.ECDSASignature(rawRepresentation: signature)
      return signature.map { key.isValidSignature($0, for: SHA384.hash(data: bytes)) } ?? false
    case .p521(let key):
      let signature = try? P521.Signing.ECDSASignature(rawRepresentation: signature)
      return signature.map { key.isValidSignature($0, for: SHA512.hash(data: bytes)) } ?? false
    case .ed25519(let key):
      return signature.count == 64 && key.isValidSignature(signature, for: bytes)
    }
  }
}

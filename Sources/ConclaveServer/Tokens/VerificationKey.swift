import Cryptography

/// A key with which signatures of tokens are checked.
enum VerificationKey: Sendable {
  case secret(SecretKey)
  case rsa(RSAPublicKey)
  case ec(ECPublicKey)
  case ed25519(Ed25519PublicKey)

  /// Whether the algorithm belongs to this key's type. A secret is as long as the digest (RFC 7518 section 3.2).
  func accepts(_ algorithm: TokenAlgorithm) -> Bool {
    switch (self, algorithm) {
    case (.secret(let key), .hs256), (.secret(let key), .hs384), (.secret(let key), .hs512):
      key.byteCount >= algorithm.hash.byteCount
    case (.rsa, .rs256), (.rsa, .rs384), (.rsa, .rs512), (.rsa, .ps256), (.rsa, .ps384), (.rsa, .ps512): true
    case (.ec(let key), .es256): key.curve == .p256
    case (.ec(let key), .es384): key.curve == .p384
    case (.ec(let key), .es512): key.curve == .p521
    case (.ed25519, .edDSA): true
    default: false
    }
  }

  /// - Returns: whether `signature` was made by this key over `bytes`, with an algorithm that the key accepts.
  func isSignature(_ signature: [UInt8], for bytes: ArraySlice<UInt8>, by algorithm: TokenAlgorithm) -> Bool {
    guard accepts(algorithm) else { return false }
    let hash = algorithm.hash
    switch self {
    case .secret(let key): return hash.isAuthenticationCode(signature, of: bytes, key: key)
    case .rsa(let key):
      let isPSS = [.ps256, .ps384, .ps512].contains(algorithm)
      return key.isSignature(signature, of: bytes, hash: hash, padding: isPSS ? .pss : .pkcs1)
    case .ec(let key): return key.isSignature(signature, of: bytes, hash: hash)
    case .ed25519(let key): return key.isSignature(signature, of: bytes)
    }
  }
}

extension TokenAlgorithm {
  /// Ed25519 has SHA-512 in itself (RFC 8032 section 5.1).
  fileprivate var hash: HashAlgorithm {
    switch self {
    case .hs256, .rs256, .ps256, .es256: .sha256
    case .hs384, .rs384, .ps384, .es384: .sha384
    case .hs512, .rs512, .ps512, .es512, .edDSA: .sha512
    }
  }
}

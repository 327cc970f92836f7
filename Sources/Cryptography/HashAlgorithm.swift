import COpenSSL

/// Hash functions, and HMAC with them. OpenSSL has all of them, so a call fails only where memory or the library is broken, and then traps.
package enum HashAlgorithm: Sendable {
  /// Only for the key of TURN's long-term credentials (RFC 8489 section 9.2.2).
  case md5
  /// Only for HMAC (RFC 8489 section 14.5).
  case sha1
  case sha256, sha384, sha512

  /// Bytes of a digest.
  package var byteCount: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  /// As OpenSSL's providers list it.
  var name: String {
    switch self {
    case .md5: "MD5"
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha384: "SHA384"
    case .sha512: "SHA512"
    }
  }

  package func digest(of message: some Collection<UInt8>) -> [UInt8] {
    output { digest in
      var count = 0
      return message.withContiguousBytes {
        EVP_Q_digest(nil, name, nil, $0.baseAddress, $0.count, digest, &count) == 1
      } && count == byteCount
    }
  }

  /// HMAC (RFC 2104).
  package func authenticationCode(of message: some Collection<UInt8>, key: SecretKey) -> [UInt8] {
    output { code in
      var count = 0
      return key.withBytes { key in
        message.withContiguousBytes {
          EVP_Q_mac(
            nil, "HMAC", nil, name, nil, key.baseAddress, key.count, $0.baseAddress, $0.count, code, byteCount, &count)
            != nil
        }
      } && count == byteCount
    }
  }

  /// Whether `code` is the whole HMAC of the message. The time does not depend on the bytes in which it differs.
  package func isAuthenticationCode(_ code: [UInt8], of message: some Collection<UInt8>, key: SecretKey) -> Bool {
    guard code.count == byteCount else { return false }
    return CRYPTO_memcmp(code, authenticationCode(of: message, key: key), byteCount) == 0
  }

  private func output(_ write: (UnsafeMutablePointer<UInt8>) -> Bool) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, count in
      let isWritten = leavingNoErrors { buffer.baseAddress.map(write) ?? false }
      precondition(isWritten, "OpenSSL has no \(name)")
      count = byteCount
    }
  }
}

extension Collection<UInt8> {
  func withContiguousBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    withContiguousStorageIfAvailable(body) ?? Array(self).withUnsafeBufferPointer(body)
  }
}

import COpenSSL

/// A public key of RSA (RFC 8017), with 2,048 to 8,192 bits.
package struct RSAPublicKey: Sendable {
  package enum Padding: Sendable {
    case pkcs1
    /// With a salt as long as the digest, and MGF1 with the same hash (RFC 7518 section 3.5).
    case pss
  }

  package static let bitCounts = 2_048...8_192
  /// Longer exponents make a verification slow.
  private static let longestExponent = 33

  private let key: AsymmetricKey
  /// The size of the modulus.
  package let bitCount: Int

  /// Both numbers are in network byte order. nil unless the modulus is odd and has a number of bits from `bitCounts`, and the exponent is odd, more than 1, and has 33 bits at most.
  package init?(modulus: some Collection<UInt8>, exponent: some Collection<UInt8>) {
    let modulus = Array(modulus.drop { $0 == 0 })
    let exponent = Array(exponent.drop { $0 == 0 })
    bitCount = Self.bitCount(modulus)
    guard Self.bitCounts.contains(bitCount), 2...Self.longestExponent ~= Self.bitCount(exponent),
      modulus.last.map({ $0 & 1 }) == 1, exponent.last.map({ $0 & 1 }) == 1,
      let key = AsymmetricKey({
        copenssl_rsa_public_key(modulus, Int32(modulus.count), exponent, Int32(exponent.count))
      })
    else { return nil }
    self.key = key
  }

  /// A SubjectPublicKeyInfo in DER (RFC 3279 section 2.3.1), and nothing behind it.
  package init?(spki: [UInt8]) {
    var whole = DERReader(spki[...])
    guard let content = whole.content(.sequence), whole.isAtEnd, content.starts(with: Self.algorithm) else {
      return nil
    }
    var info = DERReader(content.dropFirst(Self.algorithm.count))
    // The first byte counts the unused bits of the last.
    guard let bits = info.content(.bitString), info.isAtEnd, bits.first == 0 else { return nil }
    var inner = DERReader(bits.dropFirst())
    guard let numbers = inner.content(.sequence), inner.isAtEnd else { return nil }
    var reader = DERReader(numbers)
    guard let modulus = reader.unsignedInteger(), let exponent = reader.unsignedInteger(), reader.isAtEnd else {
      return nil
    }
    self.init(modulus: modulus, exponent: exponent)
  }

  /// - Returns: whether `signature`, as long as the modulus, is one of `message`.
  package func isSignature(
    _ signature: [UInt8], of message: some Collection<UInt8>, hash: HashAlgorithm, padding: Padding
  ) -> Bool {
    guard signature.count == (bitCount + 7) / 8 else { return false }
    return key.isSignature(signature, of: message, hash: hash) { context in
      switch padding {
      case .pkcs1: EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1
      case .pss:
        EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
          && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1
      }
    }
  }

  private static func bitCount(_ number: [UInt8]) -> Int {
    number.first.map { 8 * number.count - $0.leadingZeroBitCount } ?? 0
  }

  /// The AlgorithmIdentifier of rsaEncryption, whose parameter is NULL.
  private static let algorithm: [UInt8] = [
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
  ]
}

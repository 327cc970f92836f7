import COpenSSL

/// A pair of keys of P-256, to sign by ECDSA or to agree on a secret by ECDH.
package struct P256PrivateKey: Sendable {
  private let key: AsymmetricKey
  /// The public key as an uncompressed point, 65 bytes.
  package let publicKey: [UInt8]

  private static let curve = ECPublicKey.Curve.p256
  /// A key in PEM has a few hundred bytes; comments may stand around it.
  private static let longestPEM = 64 << 10

  /// Makes a fresh key.
  package init() {
    guard let key = AsymmetricKey({ copenssl_p256_key() }), let point = Self.point(of: key) else {
      fatalError("OpenSSL made no key of P-256")
    }
    self.key = key
    publicKey = point
  }

  /// Reads a key in PEM without a password, as PKCS #8 (RFC 5958) or `EC PRIVATE KEY` (RFC 5915). nil unless it is one of P-256, and its parts belong together.
  package init?(pem: [UInt8]) {
    guard pem.count <= Self.longestPEM, let key = AsymmetricKey({ Self.read(pem) }), Self.isWhole(key),
      let point = Self.point(of: key)
    else { return nil }
    self.key = key
    publicKey = point
  }

  /// The key in PEM, as PKCS #8 without a password.
  package var pem: [UInt8] {
    leavingNoErrors {
      guard let bio = BIO_new(BIO_s_mem()) else { fatalError("out of memory") }
      // Also overwrites what was in it.
      defer { BIO_free(bio) }
      let isWritten = key.withPointer { PEM_write_bio_PKCS8PrivateKey(bio, $0, nil, nil, 0, nil, nil) }
      precondition(isWritten == 1, "OpenSSL writes a key that it made or read")
      return [UInt8](unsafeUninitializedCapacity: 1_024) { buffer, count in
        count = max(0, Int(BIO_read(bio, buffer.baseAddress, Int32(buffer.count))))
      }
    }
  }

  /// Signs by ECDSA with SHA-256.
  /// - Returns: r ‖ s, 64 bytes, others each time.
  package func signature(of message: some Collection<UInt8>) -> [UInt8] {
    let der = leavingNoErrors {
      [UInt8](unsafeUninitializedCapacity: 80) { buffer, count in
        guard let context = EVP_MD_CTX_new() else { fatalError("out of memory") }
        defer { EVP_MD_CTX_free(context) }
        count = buffer.count
        let isSigned = key.withPointer { key in
          EVP_DigestSignInit_ex(context, nil, HashAlgorithm.sha256.name, nil, nil, key, nil) == 1
            && message.withContiguousBytes {
              EVP_DigestSign(context, buffer.baseAddress, &count, $0.baseAddress, $0.count)
            } == 1
        }
        precondition(isSigned, "OpenSSL signs with a key that it made or read")
      }
    }
    guard let signature = ECDSASignature.joined(der, count: Self.curve.byteCount) else {
      fatalError("OpenSSL made a signature that is none")
    }
    return signature
  }

  /// The x-coordinate of ECDH (SEC 1 section 3.3.1), 32 bytes; nil if the other key is of another curve.
  package func sharedSecret(with other: ECPublicKey) -> SecretKey? {
    guard other.curve == Self.curve else { return nil }
    var isDerived = false
    let secret = SecretKey(byteCount: Self.curve.byteCount) { secret in
      isDerived = leavingNoErrors {
        key.withPointer { own in
          other.key.withPointer { other in
            guard let context = EVP_PKEY_CTX_new_from_pkey(nil, own, nil) else { return false }
            defer { EVP_PKEY_CTX_free(context) }
            var count = secret.count
            return EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, other) == 1
              && EVP_PKEY_derive(context, secret.baseAddress?.assumingMemoryBound(to: UInt8.self), &count) == 1
              && count == secret.count
          }
        }
      }
    }
    return isDerived ? secret : nil
  }

  private static func read(_ pem: [UInt8]) -> OpaquePointer? {
    pem.withUnsafeBytes { pem in
      guard let bio = BIO_new_mem_buf(pem.baseAddress, Int32(pem.count)) else { return nil }
      defer { BIO_free(bio) }
      // Without this OpenSSL would ask for the password at the terminal.
      return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
    }
  }

  /// Whether it is of P-256, and its public half is that of the private one.
  private static func isWhole(_ key: AsymmetricKey) -> Bool {
    leavingNoErrors {
      key.withPointer { key in
        var name = [CChar](repeating: 0, count: 32)
        guard EVP_PKEY_is_a(key, "EC") == 1, EVP_PKEY_get_group_name(key, &name, name.count, nil) == 1,
          strcmp(name, SN_X9_62_prime256v1) == 0, let context = EVP_PKEY_CTX_new_from_pkey(nil, key, nil)
        else { return false }
        defer { EVP_PKEY_CTX_free(context) }
        return EVP_PKEY_check(context) == 1
      }
    }
  }

  private static func point(of key: AsymmetricKey) -> [UInt8]? {
    leavingNoErrors {
      var point: [UInt8] = [4]
      for name in [OSSL_PKEY_PARAM_EC_PUB_X, OSSL_PKEY_PARAM_EC_PUB_Y] {
        var number: OpaquePointer?
        defer { BN_free(number) }
        guard key.withPointer({ EVP_PKEY_get_bn_param($0, name, &number) }) == 1 else { return nil }
        var coordinate = [UInt8](repeating: 0, count: curve.byteCount)
        guard BN_bn2binpad(number, &coordinate, Int32(coordinate.count)) == coordinate.count else { return nil }
        point += coordinate
      }
      return point
    }
  }
}

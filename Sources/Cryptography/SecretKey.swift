import COpenSSL

/// A secret key: a shared secret, or what was derived from one. Its bytes are never copied, and are overwritten when nobody needs them any more.
///
/// `@unchecked Sendable`: the bytes are written in `init` only.
package final class SecretKey: @unchecked Sendable {
  private let bytes: UnsafeMutableRawBufferPointer

  package var byteCount: Int { bytes.count }

  package convenience init(_ bytes: some Collection<UInt8>) {
    self.init(byteCount: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// - Parameter fill: is called once, with the room for all bytes.
  init(byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    // OpenSSL takes a null pointer for a missing key, and an empty allocation may be one.
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, byteCount), alignment: 1)
    room.initializeMemory(as: UInt8.self, repeating: 0)
    bytes = UnsafeMutableRawBufferPointer(rebasing: room[..<byteCount])
    fill(bytes)
  }

  deinit {
    OPENSSL_cleanse(bytes.baseAddress, bytes.count)
    bytes.baseAddress?.deallocate()
  }

  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(UnsafeRawBufferPointer(bytes)) }
  }

  /// HKDF, extract and expand (RFC 5869 section 2), with this key as input keying material.
  /// - Parameter byteCount: of the result, at most 255 digests.
  package func derived(by hash: HashAlgorithm, salt: [UInt8], info: [UInt8], byteCount: Int) -> SecretKey {
    precondition(1...255 * hash.byteCount ~= byteCount)
    return SecretKey(byteCount: byteCount) { output in
      let isDerived = leavingNoErrors {
        withBytes {
          copenssl_hkdf(
            hash.name, $0.baseAddress, $0.count, salt, salt.count, info, info.count, output.baseAddress, output.count)
        }
      }
      precondition(isDerived == 1, "OpenSSL has no HKDF with \(hash.name)")
    }
  }

  /// Encrypts by AES-128-GCM (NIST SP 800-38D), without additional data. The key has 16 bytes.
  /// - Parameter nonce: 12 bytes, never twice under one key.
  /// - Returns: the ciphertext, as long as the plaintext, and behind it the tag of 16 bytes.
  package func seal(_ plaintext: [UInt8], nonce: SecretKey) -> [UInt8] {
    precondition(byteCount == 16 && nonce.byteCount == 12)
    let tagLength = 16
    return [UInt8](unsafeUninitializedCapacity: plaintext.count + tagLength) { sealed, count in
      let isSealed = leavingNoErrors {
        withBytes { key in
          nonce.withBytes { nonce in
            guard let cipher = copenssl_cipher_new("AES-128-GCM", key.baseAddress, key.count, 1) else { return false }
            defer { copenssl_cipher_free(cipher) }
            return copenssl_cipher_begin(cipher, nonce.baseAddress, nonce.count) == 1
              && copenssl_cipher_add(cipher, plaintext, sealed.baseAddress, plaintext.count) == 1
              && copenssl_cipher_seal(cipher, sealed.baseAddress.map { $0 + plaintext.count }, tagLength) == 1
          }
        }
      }
      precondition(isSealed, "OpenSSL has no AES-128-GCM")
      count = plaintext.count + tagLength
    }
  }
}

extension SecretKey: CustomStringConvertible, CustomReflectable {
  package var description: String { "\(byteCount) bytes" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

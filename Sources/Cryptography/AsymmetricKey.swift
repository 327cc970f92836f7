import COpenSSL

/// A public key, or a pair of keys, in OpenSSL's hands. The types of keys say which.
///
/// `@unchecked Sendable`: it is never changed, and OpenSSL locks and counts what it shares between threads.
final class AsymmetricKey: @unchecked Sendable {
  private let key: OpaquePointer

  /// nil if OpenSSL made no key.
  init?(_ make: () -> OpaquePointer?) {
    guard let key = leavingNoErrors(make) else { return nil }
    self.key = key
  }

  deinit { EVP_PKEY_free(key) }

  func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result { withExtendedLifetime(self) { body(key) } }

  /// - Parameters:
  ///   - hash: nil for Ed25519, which hashes the message itself.
  ///   - configure: sets what the key's type needs besides; whether it succeeded.
  func isSignature(
    _ signature: [UInt8], of message: some Collection<UInt8>, hash: HashAlgorithm?,
    configure: (OpaquePointer?) -> Bool = { _ in true }
  ) -> Bool {
    leavingNoErrors {
      guard let context = EVP_MD_CTX_new() else { return false }
      defer { EVP_MD_CTX_free(context) }
      // Belongs to `context`.
      var keyContext: OpaquePointer?
      let isReady = withPointer {
        EVP_DigestVerifyInit_ex(context, &keyContext, hash?.name, nil, nil, $0, nil) == 1
      }
      guard isReady, configure(keyContext) else { return false }
      // 0 is another signature, and less than 0 an error.
      return message.withContiguousBytes {
        EVP_DigestVerify(context, signature, signature.count, $0.baseAddress, $0.count)
      } == 1
    }
  }
}

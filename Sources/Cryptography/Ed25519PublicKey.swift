import COpenSSL

/// A public key of Ed25519 (RFC 8032).
package struct Ed25519PublicKey: Sendable {
  private let key: AsymmetricKey

  /// nil unless `bytes` are 32. Whether they are a point shows at the first signature.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == 32,
      let key = AsymmetricKey({ EVP_PKEY_new_raw_public_key_ex(nil, "ED25519", nil, bytes, bytes.count) })
    else { return nil }
    self.key = key
  }

  /// A SubjectPublicKeyInfo in DER, and nothing behind it.
  package init?(spki: [UInt8]) {
    guard spki.starts(with: Self.prefix) else { return nil }
    self.init(Array(spki.dropFirst(Self.prefix.count)))
  }

  package func isSignature(_ signature: [UInt8], of message: some Collection<UInt8>) -> Bool {
    signature.count == 64 && key.isSignature(signature, of: message, hash: nil)
  }

  /// The bytes before the key (RFC 8410 section 4).
  private static let prefix: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]
}

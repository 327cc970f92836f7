import COpenSSL
package import MediaModel

/// A self-signed certificate with its private key, and the DTLS settings made from it. One for the process; any thread may use
/// it.
///
/// `@unchecked Sendable`: everything is set in `init` and never changed; OpenSSL counts references to it atomically.
package final class DTLSCertificate: @unchecked Sendable {
  /// Browsers use P-256; some other clients still use RSA.
  package enum KeyType: Sendable { case p256, rsa2048 }

  /// sha-256.
  package let fingerprint: CertificateFingerprint
  let context: OpaquePointer

  /// Makes a fresh key: P-256 takes less than a millisecond, RSA (for tests of such peers) tens of them.
  package init(keyType: KeyType = .p256) {
    guard let key = keyType == .p256 ? copenssl_p256_key() : copenssl_rsa_key(2048),
      let certificate = Self.selfSigned(key), let context = Self.makeContext(certificate, key),
      let digest = Self.digest(certificate, hash: "sha-256")
    else { fatalError("OpenSSL made no certificate") }
    self.context = context
    fingerprint = CertificateFingerprint(hash: "sha-256", digest: digest)
    // The context holds its own references.
    X509_free(certificate)
    EVP_PKEY_free(key)
  }

  deinit { SSL_CTX_free(context) }

  /// The digest of a certificate by the hash's name in SDP (RFC 8122 section 5); nil for a hash that is unknown or as weak as SHA-1.
  static func digest(_ certificate: OpaquePointer, hash: String) -> [UInt8]? {
    let algorithm: OpaquePointer? =
      switch hash {
      case "sha-256": EVP_sha256()
      case "sha-384": EVP_sha384()
      case "sha-512": EVP_sha512()
      default: nil
      }
    guard let algorithm else { return nil }
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard X509_digest(certificate, algorithm, &digest, &length) == 1 else { return nil }
    return Array(digest.prefix(Int(length)))
  }

  private static func selfSigned(_ key: OpaquePointer) -> OpaquePointer? {
    guard let certificate = X509_new() else { return nil }
    var serial: UInt64 = 0
    let name = X509_get_subject_name(certificate)
    guard withUnsafeMutableBytes(of: &serial, { RAND_bytes($0.baseAddress, 8) }) == 1,
      X509_set_version(certificate, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1,
      // Valid from a day ago, for clients whose clock is slow, for ten years: only a restart renews it.
      X509_gmtime_adj(X509_getm_notBefore(certificate), -86_400) != nil,
      X509_gmtime_adj(X509_getm_notAfter(certificate), 3650 * 86_400) != nil,
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_FLAG | 1, "conclave", -1, -1, 0) == 1,
      X509_set_issuer_name(certificate, name) == 1, X509_set_pubkey(certificate, key) == 1,
      X509_sign(certificate, key, EVP_sha256()) > 0
    else { return nil }
    return certificate
  }

  private static func makeContext(_ certificate: OpaquePointer, _ key: OpaquePointer) -> OpaquePointer? {
    guard let context = SSL_CTX_new(DTLS_method()) else { return nil }
    copenssl_disable_session_cache(context)
    // A peer's certificate is a single self-signed one; this also bounds the memory of reassembly.
    copenssl_set_max_cert_list(context, 16_384)
    copenssl_set_options(context)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    // Instead of building a chain: the certificate is right if signaling announced it (RFC 5763 section 5).
    SSL_CTX_set_cert_verify_callback(context, { store, _ in DTLSSession.verify(store) }, nil)
    guard copenssl_set_dtls12_only(context) == 1,
      SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1,
      copenssl_set_groups(context, "X25519:P-256:P-384") == 1,
      SSL_CTX_use_certificate(context, certificate) == 1, SSL_CTX_use_PrivateKey(context, key) == 1,
      // Zero is success here. The server's order decides.
      SSL_CTX_set_tlsext_use_srtp(
        context, "SRTP_AEAD_AES_128_GCM:SRTP_AEAD_AES_256_GCM:SRTP_AES128_CM_SHA1_80") == 0
    else { return nil }
    return context
  }
}

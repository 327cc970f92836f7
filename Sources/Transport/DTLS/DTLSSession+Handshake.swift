import COpenSSL
import MediaModel
import Octets

extension DTLSSession {
  /// OpenSSL's verification of the peer's certificate: 1 if it is the announced one.
  static func verify(_ store: OpaquePointer?) -> Int32 {
    guard let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
      let session = SSL_get_ex_data(OpaquePointer(ssl), 0)
    else { return 0 }
    let isRight = Unmanaged<DTLSSession>.fromOpaque(session).takeUnretainedValue()
      .accepts(X509_STORE_CTX_get0_cert(store))
    if !isRight { X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED) }
    return isRight ? 1 : 0
  }

  private func accepts(_ certificate: OpaquePointer?) -> Bool {
    guard let certificate,
      let digest = DTLSCertificate.digest(certificate, hash: remoteFingerprint.hash),
      digest.count == remoteFingerprint.digest.count,
      CRYPTO_memcmp(digest, remoteFingerprint.digest, digest.count) == 0
    else {
      isFingerprintWrong = true
      return false
    }
    return true
  }

  /// The master keys and salts (RFC 5764 section 4.2): client's key, server's key, client's salt, server's salt. nil if no profile
  /// was agreed on.
  func exportKeys() -> SRTPKeys? {
    guard let selected = SSL_get_selected_srtp_profile(ssl),
      let profile = SRTPProfile(rawValue: UInt16(truncatingIfNeeded: selected.pointee.id))
    else { return nil }
    let (key, salt) = (profile.keyLength, profile.saltLength)
    let label = "EXTRACTOR-dtls_srtp"
    var material = [UInt8](repeating: 0, count: 2 * (key + salt))
    defer { OPENSSL_cleanse(&material, material.count) }
    guard SSL_export_keying_material(ssl, &material, material.count, label, label.utf8.count, nil, 0, 0) == 1
    else { return nil }
    let salts = 2 * key
    let client = SRTPMasterKey(key: Array(material[..<key]), salt: Array(material[salts..<salts + salt]))
    let server = SRTPMasterKey(key: Array(material[key..<salts]), salt: Array(material[(salts + salt)...]))
    return switch role {
    case .client: SRTPKeys(profile: profile, outbound: client, inbound: server)
    case .server: SRTPKeys(profile: profile, outbound: server, inbound: client)
    }
  }

  /// The kind of records in a datagram, by their headers.
  enum Records {
    /// All of the first epoch.
    case first
    /// At least one is of the second epoch: Finished.
    case later
    /// Not of a handshake. OpenSSL would end it for application data in the clear, which anyone may send.
    case foreign
  }

  /// A record is type, version, epoch (2 bytes), sequence number (6), length (2), content (RFC 6347 section 4.1).
  /// - Parameter dropsAlerts: treats an alert in the clear as foreign. Anyone may have sent it under the peer's address, and a record that is
  ///   not authentic may be silently dropped (RFC 6347 section 4.1.2.7).
  static func inspect(_ datagram: RawSpan, dropsAlerts: Bool) -> Records {
    var records = Records.first
    var offset = 0
    while offset < datagram.byteCount {
      // ChangeCipherSpec, alert, handshake; DTLS 1.0 (as in a ClientHello) or 1.2.
      guard offset + 13 <= datagram.byteCount, 20...22 ~= datagram[offset], datagram[offset + 1] == 0xfe,
        datagram[offset + 3] == 0, datagram[offset + 4] <= 1
      else { return .foreign }
      if datagram[offset + 4] == 1 { records = .later }
      if dropsAlerts, datagram[offset] == 21, datagram[offset + 4] == 0 { return .foreign }
      offset += 13 + Int(datagram.uint16(at: offset + 11))
    }
    return offset == datagram.byteCount ? records : .foreign
  }

  /// Whether all records of a datagram are of the second epoch: encrypted and authenticated.
  static func isProtected(_ datagram: RawSpan) -> Bool {
    var offset = 0
    while offset < datagram.byteCount {
      guard offset + 13 <= datagram.byteCount, datagram[offset + 3] == 0, datagram[offset + 4] == 1 else {
        return false
      }
      offset += 13 + Int(datagram.uint16(at: offset + 11))
    }
    return offset == datagram.byteCount
  }
}

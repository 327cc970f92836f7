import CSRTP
import Octets

/// SRTP and SRTCP in one direction under AES_CM_128_HMAC_SHA1_80 (RFC 3711) by libsrtp2, for clients without AES-GCM.
struct CounterModeTransform: ~Copyable {
  enum Direction { case send, receive }

  /// Once for the process; the first use of a `static let` is thread-safe.
  private static let isInitialized = srtp_init() == srtp_err_status_ok

  private let session: srtp_t

  init(master: SRTPMasterKey, direction: Direction) {
    precondition(Self.isInitialized && master.key.count == 16 && master.salt.count == 14)
    var key = master.key + master.salt
    var session: srtp_t?
    let status = csrtp_create(
      &session, srtp_profile_aes128_cm_sha1_80, direction == .send ? ssrc_any_outbound : ssrc_any_inbound, &key,
      UInt(ReplayWindow.size))
    guard status == srtp_err_status_ok, let session else { fatalError("libsrtp made no session") }
    self.session = session
  }

  deinit { srtp_dealloc(session) }

  /// Protects in place; the room for the tag is behind. Returns the new length, nil when libsrtp refuses.
  func sealRTP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int? {
    var length = Int32(length)
    return srtp_protect(session, packet, &length) == srtp_err_status_ok ? Int(length) : nil
  }

  func openRTP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int? {
    var length = Int32(length)
    return srtp_unprotect(session, packet, &length) == srtp_err_status_ok ? Int(length) : nil
  }

  func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int? {
    var length = Int32(length)
    return srtp_protect_rtcp(session, packet, &length) == srtp_err_status_ok ? Int(length) : nil
  }

  func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int? {
    var length = Int32(length)
    return srtp_unprotect_rtcp(session, packet, &length) == srtp_err_status_ok ? Int(length) : nil
  }
}

import CSRTP
import Seeded
import Transport

/// libsrtp2 in one direction, with which each profile is compared.
final class SRTPOracle {
  enum Direction { case sending, receiving }

  /// Once for the process; the first use of a `static let` is thread-safe.
  private static let isInitialized = srtp_init() == srtp_err_status_ok

  private let session: srtp_t

  init(profile: SRTPProfile, master: SRTPMasterKey, _ direction: Direction) {
    let name =
      switch profile {
      case .aes128CMSHA1Tag80: srtp_profile_aes128_cm_sha1_80
      case .aeadAES128GCM: srtp_profile_aead_aes_128_gcm
      case .aeadAES256GCM: srtp_profile_aead_aes_256_gcm
      }
    var key = master.key + master.salt
    var session: srtp_t?
    precondition(Self.isInitialized)
    let status = csrtp_create(
      &session, name, direction == .sending ? ssrc_any_outbound : ssrc_any_inbound, &key, 1024)
    precondition(status == srtp_err_status_ok)
    self.session = session.unsafelyUnwrapped
  }

  deinit { srtp_dealloc(session) }

  /// Each works in place and returns the new length; nil when libsrtp refuses.
  func protectRTP(_ packet: UnsafeMutableRawPointer, _ length: Int) -> Int? { call(srtp_protect, packet, length) }
  func unprotectRTP(_ packet: UnsafeMutableRawPointer, _ length: Int) -> Int? { call(srtp_unprotect, packet, length) }
  func protectRTCP(_ packet: UnsafeMutableRawPointer, _ length: Int) -> Int? { call(srtp_protect_rtcp, packet, length) }
  func unprotectRTCP(_ packet: UnsafeMutableRawPointer, _ length: Int) -> Int? {
    call(srtp_unprotect_rtcp, packet, length)
  }

  private func call(
    _ function: (srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?) -> srtp_err_status_t,
    _ packet: UnsafeMutableRawPointer, _ length: Int
  ) -> Int? {
    var length = Int32(length)
    return function(session, packet, &length) == srtp_err_status_ok ? Int(length) : nil
  }
}

extension SRTPMasterKey {
  init(_ profile: SRTPProfile, from generator: inout SeededGenerator) {
    self.init(key: generator.bytes(profile.keyLength), salt: generator.bytes(profile.saltLength))
  }
}

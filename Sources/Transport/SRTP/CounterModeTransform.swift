/// SRTP and SRTCP in one direction under AES_CM_128_HMAC_SHA1_80 (RFC 3711), for clients without AES-GCM. It keeps no per-packet state:
/// the caller provides indices.
struct CounterModeTransform: ~Copyable {
  private let rtp: CounterModeCipher
  private let rtcp: CounterModeCipher
  private let rtpSalt: CounterModeNonce
  private let rtcpSalt: CounterModeNonce
  private let rtpAuthenticator: PacketAuthenticator
  private let rtcpAuthenticator: PacketAuthenticator

  init(keys: SessionKeys) {
    rtp = CounterModeCipher(key: keys.rtpKey)
    rtcp = CounterModeCipher(key: keys.rtcpKey)
    rtpSalt = CounterModeNonce(salt: keys.rtpSalt)
    rtcpSalt = CounterModeNonce(salt: keys.rtcpSalt)
    rtpAuthenticator = PacketAuthenticator(key: keys.rtpAuthentication)
    rtcpAuthenticator = PacketAuthenticator(key: keys.rtcpAuthentication)
  }

  /// Header (as in `packet`) in the clear, prefix and padding (as they are) and payload encrypted, followed by the tag (section
  /// 3.1).
  func sealRTP(
    _ packet: UnsafeMutableRawPointer, _ layout: RTPLayout, _ payload: UnsafeRawPointer?, ssrc: UInt32, index: UInt64
  ) {
    rtp.begin(rtpSalt.nonce(ssrc: ssrc, index: index))
    if layout.prefix > 0 { rtp.transform(packet + layout.header, to: packet + layout.header, layout.prefix) }
    if let payload, layout.payload > 0 { rtp.transform(payload, to: packet + layout.payloadOffset, layout.payload) }
    if layout.padding > 0 {
      rtp.transform(packet + layout.paddingOffset, to: packet + layout.paddingOffset, layout.padding)
    }
    let length = layout.plainLength
    rtpAuthenticator.write(to: packet + length, of: packet, length, UInt32(truncatingIfNeeded: index >> 16))
  }

  /// - Parameter length: at least `header` and the tag. Returns whether the packet is authentic; it is then decrypted in place.
  func openRTP(_ packet: UnsafeMutableRawPointer, length: Int, header: Int, ssrc: UInt32, index: UInt64) -> Bool {
    let plain = length - PacketAuthenticator.tagLength
    let rollovers = UInt32(truncatingIfNeeded: index >> 16)
    guard rtpAuthenticator.accepts(packet + plain, of: packet, plain, rollovers) else { return false }
    guard plain > header else { return true }
    rtp.begin(rtpSalt.nonce(ssrc: ssrc, index: index))
    rtp.transform(packet + header, to: packet + header, plain - header)
    return true
  }

  /// Eight bytes in the clear, the rest encrypted, then E flag and index, which are also authenticated, then the tag (section
  /// 3.4).
  func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) {
    let trailer = 0x8000_0000 | index
    (packet + length).storeBytes(of: trailer.bigEndian, as: UInt32.self)
    if length > 8 {
      rtcp.begin(rtcpSalt.nonce(ssrc: ssrc, index: UInt64(index)))
      rtcp.transform(packet + 8, to: packet + 8, length - 8)
    }
    rtcpAuthenticator.write(to: packet + length + 4, of: packet, length, trailer)
  }

  /// - Parameter length: of the whole packet, at least 22. Returns whether it is authentic; it is then decrypted in place.
  func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
    let plain = length - 4 - PacketAuthenticator.tagLength
    guard rtcpAuthenticator.accepts(packet + plain + 4, of: packet, plain, 0x8000_0000 | index) else { return false }
    guard plain > 8 else { return true }
    rtcp.begin(rtcpSalt.nonce(ssrc: ssrc, index: UInt64(index)))
    rtcp.transform(packet + 8, to: packet + 8, plain - 8)
    return true
  }
}

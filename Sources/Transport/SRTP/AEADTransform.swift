/// SRTP and SRTCP in one direction under AES-GCM (RFC 7714). It keeps no per-packet state: the caller provides indices.
struct AEADTransform: ~Copyable {
  private let rtp: AEADCipher
  private let rtcp: AEADCipher
  private let rtpSalt: AEADNonce
  private let rtcpSalt: AEADNonce

  init(keys: SessionKeys, direction: AEADCipher.Direction) {
    rtp = AEADCipher(key: keys.rtpKey, direction: direction)
    rtcp = AEADCipher(key: keys.rtcpKey, direction: direction)
    rtpSalt = AEADNonce(salt: keys.rtpSalt)
    rtcpSalt = AEADNonce(salt: keys.rtcpSalt)
  }

  /// Header (as in `packet`) in the clear, prefix and padding (as they are) and payload encrypted, followed by the tag (section
  /// 8.2).
  func sealRTP(
    _ packet: UnsafeMutableRawPointer, _ layout: RTPLayout, _ payload: UnsafeRawPointer?, ssrc: UInt32, index: UInt64
  ) {
    rtp.begin(rtpSalt.nonce(ssrc: ssrc, index: index))
    rtp.authenticate(packet, layout.header)
    if layout.prefix > 0 { rtp.transform(packet + layout.header, to: packet + layout.header, layout.prefix) }
    if let payload, layout.payload > 0 { rtp.transform(payload, to: packet + layout.payloadOffset, layout.payload) }
    if layout.padding > 0 {
      rtp.transform(packet + layout.paddingOffset, to: packet + layout.paddingOffset, layout.padding)
    }
    rtp.seal(tag: packet + layout.plainLength)
  }

  /// - Parameter length: at least `header` and the tag. Returns whether the packet is authentic; it is then decrypted in place.
  func openRTP(_ packet: UnsafeMutableRawPointer, length: Int, header: Int, ssrc: UInt32, index: UInt64) -> Bool {
    let encrypted = length - header - AEADCipher.tagLength
    rtp.begin(rtpSalt.nonce(ssrc: ssrc, index: index))
    rtp.authenticate(packet, header)
    if encrypted > 0 { rtp.transform(packet + header, to: packet + header, encrypted) }
    return rtp.opens(tag: packet + header + encrypted)
  }

  /// Eight bytes in the clear, the rest encrypted, tag, then E flag and index, which are also authenticated (section
  /// 9.2).
  func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) {
    let trailer = packet + length + AEADCipher.tagLength
    trailer.storeBytes(of: (0x8000_0000 | index).bigEndian, as: UInt32.self)
    rtcp.begin(rtcpSalt.nonce(ssrc: ssrc, index: UInt64(index)))
    rtcp.authenticate(packet, 8)
    rtcp.authenticate(trailer, 4)
    if length > 8 { rtcp.transform(packet + 8, to: packet + 8, length - 8) }
    rtcp.seal(tag: packet + length)
  }

  /// - Parameter length: of the whole packet, at least 28. Returns whether it is authentic; it is then decrypted in place.
  func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
    let plain = length - 4 - AEADCipher.tagLength
    rtcp.begin(rtcpSalt.nonce(ssrc: ssrc, index: UInt64(index)))
    rtcp.authenticate(packet, 8)
    rtcp.authenticate(packet + length - 4, 4)
    if plain > 8 { rtcp.transform(packet + 8, to: packet + 8, plain - 8) }
    return rtcp.opens(tag: packet + plain)
  }
}

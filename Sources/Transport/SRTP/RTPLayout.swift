/// The parts of an RTP packet that is about to be protected, in bytes.
struct RTPLayout {
  var header: Int
  var prefix: Int
  var payload: Int
  var padding: Int

  var payloadOffset: Int { header + prefix }
  var paddingOffset: Int { header + prefix + payload }
  var plainLength: Int { header + prefix + payload + padding }

  /// Length of an RTP header with CSRCs and extension (RFC 3550 section 5.1); nil when `packet` is no RTP or shorter than that.
  static func headerLength(_ packet: UnsafeMutableRawBufferPointer) -> Int? {
    guard packet.count >= 12, packet[0] >> 6 == 2 else { return nil }
    let fixed = 12 + 4 * Int(packet[0] & 15)
    guard packet[0] & 0x10 != 0 else { return fixed <= packet.count ? fixed : nil }
    guard fixed + 4 <= packet.count else { return nil }
    let words = Int(packet[fixed + 2]) << 8 | Int(packet[fixed + 3])
    let length = fixed + 4 + 4 * words
    return length <= packet.count ? length : nil
  }
}

extension UnsafeMutableRawPointer {
  func bigEndian32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  func bigEndian16(_ offset: Int) -> UInt16 {
    UInt16(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }
}

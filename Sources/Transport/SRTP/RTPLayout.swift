import Octets

/// The parts of an RTP packet that is about to be protected, in bytes.
struct RTPLayout {
  var header: Int
  var prefix: Int
  var payload: Int
  var padding: Int

  var payloadOffset: Int { header + prefix }
  var paddingOffset: Int { header + prefix + payload }
  var plainLength: Int { header + prefix + payload + padding }

  /// Length of an RTP header with CSRCs and extension (RFC 3550 section 5.1); nil if `packet` is not RTP or shorter than that.
  static func headerLength(_ packet: RawSpan) -> Int? {
    guard packet.byteCount >= 12, packet[0] >> 6 == 2 else { return nil }
    let fixed = 12 + 4 * Int(packet[0] & 15)
    guard packet[0] & 0x10 != 0 else { return fixed <= packet.byteCount ? fixed : nil }
    guard fixed + 4 <= packet.byteCount else { return nil }
    let words = Int(packet.uint16(at: fixed + 2))
    let length = fixed + 4 + 4 * words
    return length <= packet.byteCount ? length : nil
  }
}

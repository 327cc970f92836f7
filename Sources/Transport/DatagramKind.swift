import Octets

/// The protocol of a datagram on the shared port, by its first bytes (RFC 7983 section 7, RFC 5761 section 4).
package enum DatagramKind: Sendable {
  case stun, dtls, rtp, rtcp, unknown

  /// `unknown` also for a datagram too short for the fixed header of its protocol.
  package static func classify(_ datagram: RawSpan) -> DatagramKind {
    guard datagram.byteCount >= 8 else { return .unknown }
    switch datagram[0] {
    case 128...191:
      // RTP payload types 64 to 95 with the marker bit would be read as RTCP; RFC 5761 forbids them.
      if 192...223 ~= datagram[1] { return .rtcp }
      return datagram.byteCount >= 12 ? .rtp : .unknown
    case 20...63: return datagram.byteCount >= 13 ? .dtls : .unknown
    case 0...3: return datagram.byteCount >= 20 ? .stun : .unknown
    default: return .unknown
    }
  }
}

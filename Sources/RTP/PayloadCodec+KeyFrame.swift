import Octets

extension PayloadCodec {
  /// Whether the clear bytes distinguish a key frame's first packet from others.
  package var hasVisibleKeyFrames: Bool {
    switch self {
    case .vp8, .vp9, .h264, .av1: true
    case .opus, .other: false
    }
  }

  /// Whether the packet begins a key frame. False if that cannot be read.
  /// - Parameter vp8: the descriptor of a VP8 payload, nil if it cannot be read.
  package func startsKeyFrame(_ payload: RawSpan, vp8: VP8Descriptor?) -> Bool {
    guard payload.byteCount > 0 else { return false }
    switch self {
    case .vp8: return vp8?.isKeyFrame(payload) ?? false
    case .vp9: return Self.startsVP9KeyFrame(payload)
    case .h264: return Self.startsH264KeyFrame(payload)
    // N: the first packet of a coded video sequence (RTP payload format for AV1, section 4.4).
    case .av1: return payload[0] & 0x08 != 0
    case .opus, .other: return false
    }
  }

  /// RFC 9628 section 4.2: B, not P, and the lowest spatial layer.
  private static func startsVP9KeyFrame(_ payload: RawSpan) -> Bool {
    let flags = payload[0]
    guard flags & 0x48 == 0x08 else { return false }
    guard flags & 0x20 != 0 else { return true }
    var offset = 1
    if flags & 0x80 != 0 {
      guard payload.byteCount > 1 else { return false }
      offset += payload[1] & 0x80 != 0 ? 2 : 1
    }
    return offset < payload.byteCount && payload[offset] >> 1 & 7 == 0
  }

  /// RFC 6184: an SPS, or the beginning of an IDR slice, by itself, first in a STAP-A or first in fragments.
  private static func startsH264KeyFrame(_ payload: RawSpan) -> Bool {
    func isKey(_ type: UInt8) -> Bool { type == 5 || type == 7 }
    switch payload[0] & 31 {
    case 24: return payload.byteCount > 3 && isKey(payload[3] & 31)
    case 28: return payload.byteCount > 1 && payload[1] & 0x80 != 0 && isKey(payload[1] & 31)
    case let type: return isKey(type)
    }
  }
}

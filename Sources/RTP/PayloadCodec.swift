import Octets

/// Reads the first bytes of a payload, by codec: where a frame begins, and which bytes its sender encrypted end to end (protocol
/// section 5, "Clear bytes").
package enum PayloadCodec: Sendable {
  case opus, vp8, vp9, h264, av1, other

  package init(name: String) {
    switch name.lowercased() {
    case "opus": self = .opus
    case "vp8": self = .vp8
    case "vp9": self = .vp9
    case "h264": self = .h264
    case "av1": self = .av1
    default: self = .other
    }
  }

  package enum FrameStart: Equatable, Sendable {
    /// The packet does not begin a frame.
    case none
    /// It begins a frame. These bytes of the payload are encrypted; the rest is in later packets.
    case encrypted(Range<Int>)
    /// It seems to begin a frame, but is too short or has another form.
    case unreadable
  }

  /// - Parameter vp8: the descriptor of a VP8 payload, nil if it cannot be read.
  package func frameStart(in payload: RawSpan, vp8: VP8Descriptor?) -> FrameStart {
    // A probe.
    guard payload.byteCount > 0 else { return .none }
    return switch self {
    case .opus: .encrypted(0..<payload.byteCount)
    case .vp8: vp8.map { Self.vp8(payload, $0) } ?? .unreadable
    case .vp9: Self.vp9(payload)
    case .h264: Self.h264(payload)
    case .av1: Self.av1(payload)
    case .other: .unreadable
    }
  }

  /// Whether the place of the encrypted bytes is certain. No receiver can then open a frame without a header there.
  package var isAlwaysReadable: Bool { self == .opus || self == .vp8 }

  /// 10 bytes of a key frame stay clear and 3 of any other; the lowest bit of the first byte distinguishes them (RFC
  /// 7741 section 4.3).
  private static func vp8(_ payload: RawSpan, _ descriptor: VP8Descriptor) -> FrameStart {
    guard descriptor.startsFrame else { return .none }
    guard descriptor.length < payload.byteCount else { return .unreadable }
    return start(at: descriptor.length + (payload[descriptor.length] & 1 == 0 ? 10 : 3), payload.byteCount)
  }

  private static func start(at offset: Int, _ end: Int) -> FrameStart {
    offset < end ? .encrypted(offset..<end) : .unreadable
  }
}

extension PayloadCodec {
  /// The payload descriptor of RFC 9628 section 4.2; nothing of the frame stays clear.
  private static func vp9(_ payload: RawSpan) -> FrameStart {
    let flags = payload[0]
    guard flags & 0x08 != 0 else { return .none }
    var bytes = ByteReader(at: 1, end: payload.byteCount)
    // Picture id, with 15 bits if preceded by an M bit.
    if flags & 0x80 != 0, bytes.next(payload) & 0x80 != 0 { bytes.skip(1) }
    // Layer indices, and TL0PICIDX in non-flexible mode.
    if flags & 0x20 != 0 { bytes.skip(flags & 0x10 == 0 ? 2 : 1) }
    // Up to three reference indices, each with a bit that says whether another follows.
    if flags & 0x50 == 0x50, bytes.next(payload) & 1 != 0, bytes.next(payload) & 1 != 0 { bytes.skip(1) }
    if flags & 0x02 != 0 { skipScalability(&bytes, payload) }
    return bytes.isBroken ? .unreadable : start(at: bytes.offset, payload.byteCount)
  }

  /// Scalability structure (RFC 9628 section 4.2.1).
  private static func skipScalability(_ bytes: inout ByteReader, _ payload: RawSpan) {
    let structure = bytes.next(payload)
    if structure & 0x10 != 0 { bytes.skip((Int(structure >> 5) + 1) * 4) }
    guard structure & 0x08 != 0 else { return }
    for _ in 0..<bytes.next(payload) { bytes.skip(Int(bytes.next(payload) >> 2 & 3)) }
  }

  /// RFC 6184: the first slice's NAL header and 3 bytes stay clear.
  private static func h264(_ payload: RawSpan) -> FrameStart {
    switch payload[0] & 31 {
    case 1, 5: return start(at: 4, payload.byteCount)
    case 6...13: return .none
    // FU-A: the second byte has the S bit and the NAL's type.
    case 28:
      guard payload.byteCount >= 2 else { return .unreadable }
      guard payload[1] & 0x80 != 0, [1, 5].contains(payload[1] & 31) else { return .none }
      return start(at: 5, payload.byteCount)
    // STAP-A: NALs after their lengths.
    case 24:
      var bytes = ByteReader(at: 1, end: payload.byteCount)
      while bytes.offset < payload.byteCount {
        let length = Int(bytes.next(payload)) << 8 | Int(bytes.next(payload))
        let nal = bytes.offset
        bytes.skip(length)
        guard length > 0, !bytes.isBroken else { return .unreadable }
        if [1, 5].contains(payload[nal] & 31) { return start(at: nal + 4, bytes.offset) }
      }
      return .none
    default: return .unreadable
    }
  }

  /// RTP payload format for AV1, section 4: the first OBU of type 6 (frame), after its header.
  private static func av1(_ payload: RawSpan) -> FrameStart {
    // Z: the first element continues an OBU of the previous packet.
    guard payload[0] & 0x80 == 0 else { return .none }
    let count = Int(payload[0] >> 4 & 3)
    var bytes = ByteReader(at: 1, end: payload.byteCount)
    var element = 0
    while bytes.offset < payload.byteCount {
      element += 1
      let length = count == 0 || element < count ? bytes.leb128(payload) : payload.byteCount - bytes.offset
      let first = bytes.offset
      bytes.skip(length)
      guard length > 0, !bytes.isBroken else { return .unreadable }
      guard payload[first] >> 3 & 15 == 6 else { continue }
      var header = ByteReader(at: first + 1, end: bytes.offset)
      if payload[first] & 0x04 != 0 { header.skip(1) }
      if payload[first] & 0x02 != 0 { _ = header.leb128(payload) }
      return header.isBroken ? .unreadable : start(at: header.offset, bytes.offset)
    }
    return .unreadable
  }
}

/// Reads bytes, and notes when none are left. It stores only offsets; each call is given the bytes.
private struct ByteReader {
  private let end: Int
  private(set) var offset: Int
  private(set) var isBroken = false

  /// - Parameter end: where the bytes end.
  init(at offset: Int, end: Int) {
    self.offset = offset
    self.end = end
  }

  /// 0 beyond the end.
  mutating func next(_ bytes: RawSpan) -> UInt8 {
    guard offset < end else {
      isBroken = true
      return 0
    }
    offset += 1
    return bytes[offset - 1]
  }

  mutating func skip(_ count: Int) {
    guard count <= end - offset else {
      isBroken = true
      offset = end
      return
    }
    offset += count
  }

  /// At most 28 bits: no length in a datagram needs more.
  mutating func leb128(_ bytes: RawSpan) -> Int {
    var value = 0
    for shift in stride(from: 0, to: 28, by: 7) {
      let byte = next(bytes)
      value |= Int(byte & 0x7f) << shift
      if byte & 0x80 == 0 { return value }
    }
    isBroken = true
    return 0
  }
}

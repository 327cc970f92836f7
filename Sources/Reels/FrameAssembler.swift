import MediaModel
import Octets
import RTP

/// Puts the packets of one RTP stream in order, and their payloads together as frames: the bytes that the sender's transform returned.
///
/// A hole is waited for, because the SFU asks the sender again. Then the frame that lacks a packet is given up.
struct FrameAssembler {
  /// A whole frame.
  struct Frame {
    var bytes: [UInt8]
    var timestamp: UInt32
    var isKeyFrame = false
    var isDiscardable = false
    var spatialLayer: UInt8 = 0
    var temporalLayer: UInt8 = 0
    /// Quarter turns clockwise.
    var orientation: UInt8 = 0
    /// The arrival of its first packet.
    var arrival: Instant
    /// Bytes before the SFrame.
    var clearBytes = 0
  }

  /// The next thing in the stream.
  enum Item {
    case frame(Frame)
    /// Packets did not come, or were no part of a frame.
    case hole(packets: UInt32)
  }

  /// How long a hole is waited for, behind the newest packet.
  static let patience = Duration.milliseconds(1_500)
  /// Packets that wait for an earlier one.
  static let maximumWaiting = 2_048
  static let maximumWaitingBytes = 2 << 20
  /// A hole that is longer is a jump: the packets before it are not coming.
  private static let longestHole: UInt64 = 1 << 14

  private struct Waiting {
    var packet: ReelPacket
    var arrival: Instant
  }

  private var next: UInt64?
  private var waiting: [UInt64: Waiting] = [:]
  private var waitingBytes = 0
  private var frame: Frame?
  /// Packets that were lost, and not told yet.
  private var missing: UInt32 = 0
  private var orientation: UInt8 = 0

  /// - Parameter index: its unwrapped sequence number.
  mutating func add(_ packet: consuming ReelPacket, index: UInt64, now: Instant, into items: inout [Item]) {
    let first = next ?? index
    if next == nil { next = index }
    guard index >= first else { return }
    if index - first > Self.longestHole {
      giveUp(upTo: index, into: &items)
    } else if index > first, waiting[index] != nil {
      return
    }
    if index == next {
      push(packet, arrival: now, into: &items)
      next = index &+ 1
      proceed(into: &items)
      return
    }
    waitingBytes += packet.payload.count
    waiting[index] = Waiting(packet: packet, arrival: now)
    if waiting.count > Self.maximumWaiting || waitingBytes > Self.maximumWaitingBytes { skip(into: &items) }
  }

  /// Gives up holes that have been waited for.
  mutating func expire(now: Instant, into items: inout [Item]) {
    while let oldest = waiting.values.map(\.arrival).min(), oldest.advanced(by: Self.patience) <= now {
      skip(into: &items)
    }
  }

  /// Nothing more comes: what is there without what is missing.
  mutating func finish(into items: inout [Item]) {
    while !waiting.isEmpty { skip(into: &items) }
  }

  /// Passes on what follows without a hole.
  private mutating func proceed(into items: inout [Item]) {
    while let index = next, let held = waiting.removeValue(forKey: index) {
      waitingBytes -= held.packet.payload.count
      push(held.packet, arrival: held.arrival, into: &items)
      next = index &+ 1
    }
  }

  private mutating func skip(into items: inout [Item]) {
    guard let lowest = waiting.keys.min() else { return }
    giveUp(upTo: lowest, into: &items)
    proceed(into: &items)
  }

  /// The packets before this one are not coming.
  private mutating func giveUp(upTo index: UInt64, into items: inout [Item]) {
    guard let first = next else { return }
    for (place, held) in waiting where place < index {
      waitingBytes -= held.packet.payload.count
      waiting[place] = nil
    }
    frame = nil
    missing = missing &+ UInt32(clamping: index - first)
    items.append(.hole(packets: missing))
    missing = 0
    next = index
  }

  // MARK: frames

  private mutating func push(_ packet: ReelPacket, arrival: Instant, into items: inout [Item]) {
    if let turns = packet.orientation { orientation = turns }
    // Only padding: a probe.
    guard !packet.payload.isEmpty else { return }
    switch packet.codec {
    case .opus:
      items.append(
        .frame(Frame(bytes: packet.payload, timestamp: packet.timestamp, isKeyFrame: true, arrival: arrival)))
    case .vp8: pushVP8(packet, arrival: arrival, into: &items)
    case .vp9: pushVP9(packet, arrival: arrival, into: &items)
    case .h264, .av1, .other: break
    }
  }

  private mutating func pushVP8(_ packet: ReelPacket, arrival: Instant, into items: inout [Item]) {
    let payload = packet.payload.span.bytes
    guard let descriptor = VP8Descriptor(parsing: payload), descriptor.length < payload.byteCount else {
      return breakOff(into: &items)
    }
    if descriptor.startsFrame {
      abandon(into: &items)
      let isKeyFrame = descriptor.isKeyFrame(payload)
      frame = Frame(
        bytes: [], timestamp: packet.timestamp, isKeyFrame: isKeyFrame, isDiscardable: descriptor.isDiscardable,
        temporalLayer: (descriptor.temporalLayer ?? 0) & 3, arrival: arrival, clearBytes: isKeyFrame ? 10 : 3)
    }
    append(packet, behind: descriptor.length, ends: packet.marker, into: &items)
  }

  private mutating func pushVP9(_ packet: ReelPacket, arrival: Instant, into items: inout [Item]) {
    guard let descriptor = VP9Descriptor(parsing: packet.payload.span.bytes) else { return breakOff(into: &items) }
    if descriptor.startsFrame {
      abandon(into: &items)
      frame = Frame(
        bytes: [], timestamp: packet.timestamp, isKeyFrame: descriptor.isKeyFrame,
        spatialLayer: descriptor.spatialLayer & 3, temporalLayer: descriptor.temporalLayer & 3, arrival: arrival)
    }
    append(packet, behind: descriptor.length, ends: descriptor.endsFrame, into: &items)
  }

  private mutating func append(_ packet: ReelPacket, behind offset: Int, ends: Bool, into items: inout [Item]) {
    // The rest of a frame whose beginning is missing was told as a hole.
    guard frame?.timestamp == packet.timestamp else { return abandon(into: &items) }
    frame?.bytes += packet.payload[offset...]
    guard frame?.bytes.count ?? 0 <= ReelFrames.maximumBytes else { return breakOff(into: &items) }
    guard ends, var whole = frame else { return }
    frame = nil
    whole.orientation = orientation
    items.append(.frame(whole))
  }

  /// A frame that never ended.
  private mutating func abandon(into items: inout [Item]) {
    if frame != nil { breakOff(into: &items) }
  }

  private mutating func breakOff(into items: inout [Item]) {
    frame = nil
    items.append(.hole(packets: 0))
  }
}

/// One packet of a recorded track, as far as its frame needs it.
struct ReelPacket {
  let codec: PayloadCodec
  let marker: Bool
  let timestamp: UInt32
  let payload: [UInt8]
  /// Quarter turns clockwise, if the packet says so (3GPP TS 26.114 section 7.4.5).
  let orientation: UInt8?

  /// - Parameters:
  ///   - packet: with its header.
  ///   - extensionID: of the video's orientation; 0 without.
  init(_ header: RTPHeader, _ packet: RawSpan, codec: PayloadCodec, extensionID: UInt8) {
    self.codec = codec
    marker = header.marker
    timestamp = header.timestamp
    payload = header.payloadRange.map { packet[$0] }
    let element = extensionID == 0 ? nil : HeaderExtensions(header)?.element(extensionID, in: packet)
    orientation = element.flatMap { $0.length == 1 ? packet[$0.offset] & 3 : nil }
  }
}

enum ReelFrames {
  /// The longest frame that is stored.
  static let maximumBytes = 2 << 20
}

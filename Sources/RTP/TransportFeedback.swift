import Octets

/// A report on all packets of a transport (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1): which numbers arrived, and when. A view.
///
/// `init` checks the whole report, so that the iteration needs no errors. It allocates nothing.
package struct TransportFeedback: Sequence, IteratorProtocol {
  /// Its FMT in RTCP, with type 205.
  package static let format: UInt8 = 15
  /// No browser reports more packets than this at once. A run of 8,191 numbers takes two bytes: the limit bounds the work for a report.
  package static let mostPackets = 4_096
  /// RTCP header, two SSRCs, base, count, reference time, number.
  fileprivate static let headerLength = 20

  package struct Status: Equatable, Sendable {
    package var number: UInt16
    /// µs since the report's reference time; nil if the packet has not arrived.
    package var offset: Int64?
  }

  package let sender: UInt32
  /// Any SSRC of the transport.
  package let media: UInt32
  /// The receiver's clock in units of 64 ms, 24 bits. `FeedbackClock` turns it into a clock that does not wrap.
  package let referenceTime: UInt32
  /// Counts the reports, modulo 256.
  package let reportNumber: UInt8

  /// The number of packets that the report covers.
  package let count: Int

  private let bytes: UnsafeRawBufferPointer
  private var number: UInt16
  private var remaining: Int
  private var chunks: ChunkReader
  private var delta: Int
  private var offset: Int64 = 0

  /// `packet` is one RTCP packet with its header; it must outlive the view. nil if it is something else or its lengths contradict
  /// each other.
  package init?(parsing packet: UnsafeRawBufferPointer) {
    let fields = packet.bytes
    guard packet.count >= Self.headerLength, fields[0] >> 6 == 2, fields[0] & 0x1f == Self.format,
      fields[1] == RTCPType.transportFeedback, packet.count == 4 + 4 * Int(fields.uint16(at: 2))
    else { return nil }
    var end = packet.count
    if fields[0] & 0x20 != 0 {
      // libwebrtc pads by 1 to 3 bytes, although RFC 3550 section 6.4.1 requires a multiple of 4.
      let padding = Int(fields[end - 1])
      guard padding > 0, padding <= end - Self.headerLength else { return nil }
      end -= padding
    }
    bytes = packet.part(0..<end)
    sender = fields.uint32(at: 4)
    media = fields.uint32(at: 8)
    number = fields.uint16(at: 12)
    count = Int(fields.uint16(at: 14))
    remaining = count
    referenceTime = fields.uint24(at: 16)
    reportNumber = fields[19]
    guard remaining > 0, remaining <= Self.mostPackets else { return nil }
    chunks = ChunkReader(position: Self.headerLength)
    var check = chunks
    var deltas = 0
    for _ in 0..<remaining {
      guard let symbol = check.next(in: bytes.bytes), symbol < 3 else { return nil }
      deltas += Int(symbol)
    }
    // Symbols 1 and 2 have deltas of one and two bytes.
    delta = check.position
    guard delta + deltas <= end else { return nil }
  }

  package mutating func next() -> Status? {
    guard remaining > 0 else { return nil }
    let fields = bytes.bytes
    remaining -= 1
    defer { number &+= 1 }
    switch chunks.next(in: fields) {
    case 1:
      offset += 250 * Int64(fields[delta])  // in range: 4,096 deltas of 8 bits
      delta += 1
    case 2:
      offset += 250 * Int64(Int16(bitPattern: fields.uint16(at: delta)))  // in range: of 16 bits
      delta += 2
    default:
      return Status(number: number, offset: nil)
    }
    return Status(number: number, offset: offset)
  }
}

/// Iterates over the chunks of a report: runs of one symbol, or vectors of one or two bits for each packet.
private struct ChunkReader {
  private(set) var position: Int
  private var chunk: UInt16 = 0
  private var left = 0

  init(position: Int) { self.position = position }

  /// nil at the end of the bytes.
  mutating func next(in bytes: RawSpan) -> UInt8? {
    if left == 0 {
      guard position + 2 <= bytes.byteCount else { return nil }
      chunk = bytes.uint16(at: position)
      position += 2
      left = chunk & 0x8000 == 0 ? Int(chunk & 0x1fff) : chunk & 0x4000 == 0 ? 14 : 7
      // An empty run would never end.
      guard left > 0 else { return nil }
    }
    left -= 1
    if chunk & 0x8000 == 0 { return UInt8(chunk >> 13 & 3) }
    return chunk & 0x4000 == 0 ? UInt8(chunk >> UInt16(left) & 1) : UInt8(chunk >> UInt16(2 * left) & 3)
  }
}

/// Reference times of successive reports as one clock. They have 24 bits of 64 ms and wrap after 12 days.
///
/// The receiver may write anything, so the clock has a range: it is within `reach` of the time at which it began.
package struct FeedbackClock: Sendable {
  /// In units of 64 ms. Reports arrive every 50 to 250 ms; after 10 s without one, nothing that the clock measured is
  /// valid any longer.
  package static let longestStep: Int32 = 156
  /// In units of 64 ms: 17 years. The clock begins at no more than 24 bits of them.
  package static let reach: Int64 = 1 << 33

  private var last: UInt32?
  private var time: Int64 = 0

  package init() {}

  /// µs of a clock that does not wrap. nil if the time is further from the last one than `longestStep`, or the clock is out of reach: it
  /// starts again with the next report, at a time unrelated to the previous ones.
  package mutating func microseconds(_ referenceTime: UInt32) -> Int64? {
    guard let last else {
      self.last = referenceTime
      time = Int64(referenceTime)
      return time &* 64_000
    }
    // The shorter way round, because reports overtake each other.
    let step = Int32(bitPattern: (referenceTime &- last) << 8) >> 8
    time &+= Int64(step)
    guard step.magnitude <= Self.longestStep, time.magnitude <= Self.reach else {
      self = FeedbackClock()
      return nil
    }
    self.last = referenceTime
    return time &* 64_000
  }
}

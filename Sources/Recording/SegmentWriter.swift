package import MediaModel
import Octets

extension SegmentHeader {
  /// The header of a new segment.
  /// - Parameter nonce: 12 random bytes, if a device seals the segment; nil for one that the server writes, because each frame in it is sealed.
  package init(
    recording: RecordingID, reel: UInt32, number: UInt32, start: Int64, previous: SegmentHash, nonce: [UInt8]? = nil
  ) {
    isSealed = nonce != nil
    self.recording = recording
    self.reel = reel
    self.number = number
    self.start = start
    self.previous = previous
    self.nonce = nonce ?? [UInt8](repeating: 0, count: Self.nonceBytes)
  }

  /// The 96 bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    bytes += UInt32(0x4352_4543).networkOrderBytes
    bytes += [1, isSealed ? 1 : 0]
    bytes += UInt16(Self.byteCount).networkOrderBytes
    bytes += recording.bytes
    bytes += reel.networkOrderBytes
    bytes += number.networkOrderBytes
    bytes += UInt64(min(max(0, start), Self.timeLimit - 1)).networkOrderBytes
    bytes += previous.bytes
    bytes += nonce
    bytes += [UInt8](repeating: 0, count: 12)
    return bytes
  }
}

/// Writes the records of one segment (protocol section 13.2). `SegmentContents` reads them.
package struct SegmentWriter: Sendable {
  /// Records that were not taken yet.
  private var bytes: [UInt8] = []
  private(set) var recordCount: UInt32 = 0
  /// The bytes of all records so far.
  package private(set) var byteCount = 0

  package init() {}

  /// Bytes that were not taken yet.
  package var pendingCount: Int { bytes.count }

  /// Whether a frame may still follow, and the records that a segment ends with.
  package var hasRoom: Bool { recordCount < UInt32(SegmentContents.maximumRecords) - 512 }

  /// Takes the records that were written since the last call.
  package mutating func take() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  package mutating func append(_ stream: RecordedStream) {
    begin(1, 13)
    bytes += [stream.index, stream.n, stream.source, stream.codec, stream.layer]
    add(stream.clockRate)
    add(stream.epoch)
  }

  /// - Parameters:
  ///   - flags: as in `RecordedFrame`.
  ///   - timestamp: RTP's.
  ///   - arrival: in milliseconds since the segment's start.
  ///   - frame: at most `maximumFrame` bytes.
  package mutating func appendFrame(
    _ index: UInt8, flags: UInt8, timestamp: UInt32, arrival: UInt32, _ frame: [UInt8]
  ) {
    begin(2, 10 + frame.count)
    bytes += [index, flags]
    add(timestamp)
    add(arrival)
    bytes += frame
  }

  package mutating func append(_ clock: RecordedClock) {
    begin(3, 14)
    bytes += [clock.index, clock.source.rawValue]
    add(clock.timestamp)
    add(time: clock.time)
  }

  package mutating func append(_ gap: RecordedGap) {
    begin(4, 14)
    bytes += [gap.index ?? Self.allStreams, gap.reason]
    add(gap.range.lowerBound)
    add(gap.range.upperBound)
    add(gap.missing)
  }

  package mutating func append(_ mark: RecordedMark) {
    begin(5, 6)
    bytes += [mark.index ?? Self.allStreams, mark.what]
    add(mark.at)
  }

  /// The last record.
  package mutating func append(_ end: SegmentEnd) {
    let count = recordCount
    begin(127, 13)
    bytes += [end.reason.rawValue]
    add(count)
    add(time: end.time)
  }

  /// The contents of a segment that was not finished, up to its last whole record, with an end by recovery. nil if there is nothing in them.
  package static func closing(_ contents: [UInt8], start: Int64) -> [UInt8]? {
    let read = SegmentContents(parsing: contents.span.bytes, start: start)
    if case .closed = read.ending { return Array(contents[..<read.byteCount]) }
    guard read.recordCount > 0, read.recordCount < SegmentContents.maximumRecords else { return nil }
    let last = read.records.reduce(start) { time, record in
      if case .frame(let frame) = record { max(time, frame.time) } else { time }
    }
    var writer = SegmentWriter()
    writer.recordCount = UInt32(read.recordCount)
    writer.append(SegmentEnd(reason: .recovered, time: last))
    return contents[..<read.byteCount] + writer.take()
  }

  /// The longest frame, so that a segment with one has room for what belongs to it.
  package static let maximumFrame = 4 << 20

  private static let allStreams: UInt8 = 255

  private mutating func add(_ number: UInt32) {
    for shift in stride(from: UInt32(24), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  /// A clock may be set to any time, and a segment has those that JavaScript's numbers hold.
  private mutating func add(time: Int64) {
    let number = UInt64(min(max(0, time), SegmentHeader.timeLimit - 1))
    add(UInt32(truncatingIfNeeded: number >> 32))
    add(UInt32(truncatingIfNeeded: number))
  }

  private mutating func begin(_ type: UInt8, _ length: Int) {
    bytes.append(type)
    bytes += [
      UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8),
      UInt8(truncatingIfNeeded: length),
    ]
    recordCount += 1
    byteCount += 4 + length
  }
}

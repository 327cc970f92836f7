import MediaModel
import Octets
import Seeded
import Testing

@testable import Recording

/// A written segment is read back as it was.
struct SegmentWriterTests {
  private static let id = RecordingID([UInt8](repeating: 9, count: 16))!

  @Test func aHeaderIsReadBack() throws {
    let previous = try #require(SegmentHash([UInt8](1...32)))
    for (number, hash) in [(UInt32(0), SegmentHash.zeros), (5, previous)] {
      let header = SegmentHeader(
        recording: Self.id, reel: 3, number: number, start: 1_800_000_000_000_123, previous: hash)
      #expect(header.bytes.count == SegmentHeader.byteCount)
      #expect(try SegmentHeader(parsing: header.bytes.span.bytes) == header)
    }
  }

  @Test func recordsAreReadBack() {
    let stream = RecordedStream(index: 0, n: 2, source: 2, codec: 2, layer: 1, clockRate: 90_000, epoch: 300)
    let clock = RecordedClock(index: 0, source: .senderReport, timestamp: 90_000, time: 1_000_000)
    let gap = RecordedGap(index: 0, reason: 3, range: 5...9, missing: 7)
    let (all, mark) = (
      RecordedGap(index: nil, reason: 4, range: 0...0, missing: 0), RecordedMark(index: nil, what: 8, at: 4)
    )
    var writer = SegmentWriter()
    writer.append(stream)
    writer.append(clock)
    writer.appendFrame(0, flags: 0b10_01_11_01, timestamp: 180_000, arrival: 1_000, [1, 2, 3])
    writer.append(gap)
    writer.append(all)
    writer.append(mark)
    var bytes = writer.take()
    writer.append(SegmentEnd(reason: .complete, time: 2_000_000))
    #expect(writer.byteCount == bytes.count + writer.pendingCount)
    bytes += writer.take()
    let contents = SegmentContents(parsing: bytes.span.bytes, start: 0)
    #expect(contents.ending == .closed(.complete) && contents.records.count == 7)
    guard case .frame(let frame) = contents.records[2] else {
      Issue.record("no frame")
      return
    }
    #expect(Array(bytes[frame.range]) == [1, 2, 3] && frame.time == 2_000_000 && frame.isKeyFrame)
    #expect((frame.orientation, frame.spatialLayer, frame.temporalLayer) == (3, 1, 2))
    #expect(contents.records[0] == .stream(stream) && contents.records[1] == .clock(clock))
    #expect(contents.records[3...5].elementsEqual([.gap(gap), .gap(all), .mark(mark)]))
  }

  @Test func aClockOutsideOfTimeIsWrittenAsItsNearest() {
    var writer = SegmentWriter()
    writer.append(RecordedStream(index: 0, n: 1, source: 1, codec: 1, layer: 0, clockRate: 48_000, epoch: 1))
    writer.append(RecordedClock(index: 0, source: .arrivals, timestamp: 0, time: -5))
    writer.append(RecordedClock(index: 0, source: .arrivals, timestamp: 0, time: .max))
    let bytes = writer.take()
    let contents = SegmentContents(parsing: bytes.span.bytes, start: 0)
    #expect(contents.ending == .open && contents.records.count == 3)
  }
}

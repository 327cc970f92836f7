import Contract
import Recording
import Seeded
import Testing

private func parse(_ bytes: [UInt8], start: Int64 = 1_800_000_000_000_000) -> SegmentContents {
  SegmentContents(parsing: bytes.span.bytes, start: start)
}

struct SegmentContentsTests {
  @Test func theRecordsOfASealedReelAreRead() throws {
    for vector in Vectors.all.sealed {
      let contents = parse(vector.contents.bytes, start: vector.start)
      #expect(
        described(contents, vector.contents.bytes) == vector.records.map(withoutCount), "segment \(vector.number)")
      #expect(contents.ending == .closed(try #require(SegmentEnd.Reason(rawValue: vector.closed))))
    }
  }

  /// In a call a sender's report counts for the whole segment, an arrival where there is none, and the frame's own arrival without any clock.
  @Test func theRecordsOfACallsSegmentAreRead() throws {
    let vector = Vectors.all.clear
    let header = try SegmentHeader(parsing: vector.file.bytes.span.bytes)
    let bytes = Array(vector.file.bytes.dropFirst(SegmentHeader.byteCount))
    let contents = parse(bytes, start: header.start)
    #expect(described(contents, bytes) == vector.records.map(withoutCount))
    #expect(contents.ending == .closed(.recovered) && sha256(vector.file.bytes) == vector.hash.bytes)
    let frames = contents.records.compactMap { if case .frame(let frame) = $0 { frame } else { nil } }
    let camera = try #require(frames.first { $0.index == 1 })
    #expect(camera.isKeyFrame && !camera.isDiscardable && camera.orientation == 1)
    #expect(camera.spatialLayer == 1 && camera.temporalLayer == 1)
  }

  @Test(arguments: Vectors.all.contents.indices)
  func recordsCountUpToTheFirstThatDoesNotFit(_ place: Int) {
    let vector = Vectors.all.contents[place]
    let contents = parse(vector.bytes)
    #expect(contents.records.count == vector.kept, "\(vector.name)")
    let state =
      switch contents.ending {
      case .closed: "closed"
      case .open: "open"
      case .damaged: "damaged"
      }
    #expect(state == vector.state, "\(vector.name)")
  }

  /// Each prefix that ends at a record can be played (a crash leaves one).
  @Test func aPrefixHasTheRecordsThatAreInIt() {
    let bytes = Vectors.all.sealed[1].contents.bytes
    let whole = parse(bytes).records
    var boundaries = 0
    for count in 0..<bytes.count {
      let part = parse(Array(bytes.prefix(count)))
      // Times are those of the clocks in the prefix.
      #expect(
        part.records.count <= whole.count && part.records.map(\.type) == whole.prefix(part.records.count).map(\.type))
      if part.ending == .open { boundaries += 1 }
    }
    #expect(boundaries == whole.count)
  }

  @Test func anyBytesEndInRecordsOrDamage() {
    let seed: UInt64 = 0x5e9
    var random = SeededGenerator(seed: seed)
    let originals = Vectors.all.sealed.map(\.contents.bytes) + [Array(Vectors.all.clear.file.bytes.dropFirst(96))]
    var damaged = 0
    for round in 0..<20_000 {
      let bytes = random.mutated(originals[random.below(originals.count)])
      let contents = parse(bytes)
      for case .frame(let frame) in contents.records {
        #expect(frame.range.upperBound <= bytes.count, "seed \(seed), round \(round)")
      }
      if contents.ending == .damaged { damaged += 1 }
    }
    #expect((5_000...19_900).contains(damaged))
  }

  /// Timestamps, rates and times at their limits.
  @Test func noNumberIsTooLarge() {
    let limit: Int64 = (1 << 53) - 1
    for rate: UInt32 in [1, 3, .max] {
      for timestamp: UInt32 in [0, 1, 1 << 31, .max] {
        for time in [0, limit] {
          let contents = parse(
            record(1, [0, 1, 1, 1, 0] + bytes(rate) + bytes(UInt32(0)))
              + record(3, [0, 1] + bytes(UInt32(0)) + bytes(UInt64(time)))
              + record(2, [0, 0] + bytes(timestamp) + bytes(UInt32.max)), start: limit)
          let offset = Double(Int32(bitPattern: timestamp)) * 1_000_000 / Double(rate)
          let found = contents.records.compactMap { if case .frame(let frame) = $0 { frame.time } else { nil } }
          #expect(found == [time + Int64(offset.rounded(.down))])
        }
      }
    }
  }

  private func record(_ type: UInt8, _ body: [UInt8]) -> [UInt8] { [type, 0, 0, UInt8(body.count)] + body }

  private func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }

  private func withoutCount(_ record: Vectors.Record) -> Vectors.Record {
    var record = record
    record.records = nil
    return record
  }

  private func described(_ contents: SegmentContents, _ bytes: [UInt8]) -> [Vectors.Record] {
    contents.records.map { $0.described(bytes) }
  }
}

extension SegmentRecord {
  fileprivate var type: String {
    switch self {
    case .stream: "stream"
    case .frame: "frame"
    case .clock: "clock"
    case .gap: "gap"
    case .mark: "mark"
    case .end: "end"
    }
  }

  /// As the vectors describe it.
  fileprivate func described(_ contents: [UInt8]) -> Vectors.Record {
    var record = Vectors.Record(type)
    switch self {
    case .stream(let stream):
      (record.index, record.n, record.source) = (stream.index, stream.n, stream.source)
      (record.codec, record.layer) = (stream.codec, stream.layer)
      (record.clockRate, record.epoch) = (stream.clockRate, stream.epoch)
    case .frame(let frame):
      (record.index, record.flags, record.timestamp) = (frame.index, frame.flags, frame.timestamp)
      (record.arrival, record.time) = (frame.arrival, frame.time)
      record.data = Base64Bytes(Array(contents[frame.range]))
    case .clock(let clock):
      (record.index, record.how) = (clock.index, clock.source.rawValue)
      (record.timestamp, record.time) = (clock.timestamp, clock.time)
    case .gap(let gap):
      (record.index, record.why, record.missing) = (gap.index ?? 255, gap.reason, gap.missing)
      (record.from, record.to) = (gap.range.lowerBound, gap.range.upperBound)
    case .mark(let mark): (record.index, record.what, record.at) = (mark.index ?? 255, mark.what, mark.at)
    case .end(let end): (record.why, record.time) = (end.reason.rawValue, end.time)
    }
    return record
  }
}

import Contract
import MediaModel
import Recording
import Seeded
import Testing

private func parse(_ bytes: [UInt8]) throws -> SegmentHeader { try SegmentHeader(parsing: bytes.span.bytes) }

struct SegmentHeaderTests {
  @Test func aSegmentsHeaderNamesItsPlace() throws {
    for vector in Vectors.all.sealed {
      let header = try parse(vector.file.bytes)
      #expect(header.isSealed && header.recording == Vectors.all.recording && header.reel == 1)
      #expect(header.number == vector.number && header.start == vector.start)
      #expect(header.previous.bytes == vector.previous.bytes && header.nonce == vector.nonce.bytes)
    }
    #expect(try parse(Vectors.all.clear.file.bytes).isSealed == false)
  }

  @Test func eachSegmentHasTheHashOfTheOneBefore() throws {
    var previous = SegmentHash.zeros
    for vector in Vectors.all.sealed {
      #expect(try parse(vector.file.bytes).previous == previous)
      previous = try #require(SegmentHash(sha256(vector.file.bytes)))
      #expect(previous.bytes == vector.hash.bytes)
    }
    #expect(previous != .zeros)
  }

  @Test func anImpossibleHeaderIsRefused() throws {
    for bytes in Vectors.all.headers.accepted { #expect(throws: Never.self) { try parse(bytes.bytes) } }
    let errors: [String: SegmentHeaderError] = [
      "cut short": .truncated, "no segment": .noSegment, "another version": .version, "an unknown flag": .reserved,
      "another length": .reserved, "reel 0": .reel, "a number beyond 2^31": .number, "a start beyond 2^53": .start,
      "a first segment behind another": .previous, "a nonce without a seal": .nonce, "a reserved byte": .reserved,
    ]
    #expect(Set(errors.keys) == Set(Vectors.all.headers.refused.keys))
    for (name, error) in errors {
      let bytes = try #require(Vectors.all.headers.refused[name])
      #expect(throws: error, "\(name)") { try parse(bytes.bytes) }
    }
  }

  @Test func aHeaderThatIsCutAnywhereIsRefused() {
    let whole = Vectors.all.headers.accepted[0].bytes
    for count in 0..<SegmentHeader.byteCount {
      #expect(throws: SegmentHeaderError.truncated) { try parse(Array(whole.prefix(count))) }
    }
  }

  @Test func aHashHas32Bytes() throws {
    let bytes = [UInt8](0..<32)
    #expect(SegmentHash(bytes)?.bytes == bytes)
    #expect(SegmentHash(Array(bytes.dropLast())) == nil && SegmentHash(bytes + [0]) == nil)
    #expect(SegmentHash(Array(bytes.dropLast() + [0])) != SegmentHash(bytes))
  }
}

struct RecordingIDTests {
  @Test func aRecordingHasOneName() throws {
    let id = Vectors.all.id
    let recording = try #require(RecordingID(id.text))
    #expect(recording.bytes == id.bytes.bytes && recording.text == id.text)
    #expect(RecordingID(id.bytes.bytes) == recording)
    for text in id.refused + ["", String(repeating: "-", count: 36)] { #expect(RecordingID(text) == nil, "\(text)") }
    #expect(RecordingID(Array(id.bytes.bytes.dropLast())) == nil)
  }
}

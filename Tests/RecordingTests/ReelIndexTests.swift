import Contract
import MediaModel
import Recording
import Testing

struct ReelIndexTests {
  private let vectors = Vectors.all.manifests

  private func index(_ page: ReelPage) throws -> ReelIndex {
    var index = ReelIndex(recording: Vectors.all.recording, reel: 1)
    try index.append(page)
    return index
  }

  private func head(_ vector: Vectors.Head) throws -> ReelHead {
    ReelHead(
      segments: vector.segments, hash: try #require(SegmentHash(vector.head.bytes)), isEnd: vector.isEnd ?? false)
  }

  @Test func aReaderSaysWhatAReelIsWorth() throws {
    let names: [ReelIndex.Finding: String] = [
      .complete: "complete", .unfinished: "unfinished", .cutOff: "cutOff", .changed: "changed",
    ]
    for vector in vectors.checked {
      let finding = try index(vector.reel).finding(
        witnesses: vector.witnesses.map(head), remembered: vector.remembered.map(head))
      #expect(names[finding] == vector.finding, "\(vector.name)")
    }
    #expect(Set(vectors.checked.map(\.finding)) == Set(names.values))
  }

  @Test func aPageThatNoServerSendsIsRefused() {
    for vector in vectors.refused {
      #expect(throws: ReelIndexError.self, "\(vector.name)") { try index(vector.reel) }
    }
  }

  @Test func pagesFollowEachOther() throws {
    let whole = vectors.checked[0].reel
    var (first, second) = (whole, whole)
    first.segments = [whole.segments[0]]
    second.segments = Array(whole.segments.dropFirst())
    second.from = 1
    var index = try index(first)
    #expect(throws: ReelIndexError.notNext) { try index.append(first) }
    try index.append(second)
    #expect(try index.entries == self.index(whole).entries)
    var other = whole
    (other.participant, other.from) = (2, 3)
    #expect(throws: ReelIndexError.anotherReel) { try index.append(other) }
  }

  /// All of a page counts, or nothing.
  @Test func aPageWithOneImpossibleSegmentAddsNone() throws {
    var page = vectors.checked[0].reel
    page.segments[2].byteCount = 1
    var index = ReelIndex(recording: Vectors.all.recording, reel: 1)
    #expect(throws: ReelIndexError.impossible) { try index.append(page) }
    #expect(index.entries.isEmpty)
  }

  @Test func anIndexIsBounded() throws {
    var page = vectors.checked[0].reel
    page.segments = Array(repeating: page.segments[0], count: ReelIndex.capacity)
    var index = try index(page)
    page.from = UInt32(ReelIndex.capacity)
    page.segments = [page.segments[0]]
    #expect(throws: ReelIndexError.tooLong) { try index.append(page) }
  }

  @Test func aSegmentThatIsNotTheListedOneIsRefused() throws {
    let index = try index(vectors.checked[0].reel)
    let files = Vectors.all.sealed.map(\.file.bytes)
    let headers = try files.map { try SegmentHeader(parsing: $0.span.bytes) }
    let hashes = files.map { SegmentHash(sha256($0))! }
    for place in files.indices {
      let (header, count) = (headers[place], files[place].count)
      #expect(index.holds(header, byteCount: count, hash: hashes[place]))
      #expect(!index.holds(header, byteCount: count, hash: hashes[(place + 1) % 3]))
      #expect(!index.holds(header, byteCount: count + 1, hash: hashes[place]))
      var other = header
      other.reel = 2
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
      other = header
      other.start += 1
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
      other = header
      other.number = (header.number + 1) % 3
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
      other = header
      other.number = 3
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
      other = header
      other.previous = hashes[place]
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
      other = header
      other.recording = try #require(RecordingID([UInt8](repeating: 7, count: 16)))
      #expect(!index.holds(other, byteCount: count, hash: hashes[place]))
    }
  }
}

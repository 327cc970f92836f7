import Contract
import MediaModel
import Octets
import Recording
import Testing

@testable import ConclaveClient

/// A device seals segments, and reads them back.
struct RecordingWriterTests {
  private let alice = DeviceIdentity(user: "alice", device: "phone")!
  private let start = RecordingWorld.start

  private func writer(_ kind: RecordingInfo.Kind = .own) -> (RecordingWriter, SplitMix64) {
    var generator = SplitMix64(seed: 3)
    let writer = RecordingWriter(
      alice, kind: kind, tracks: RecordingWorld.tracks, at: start / 1_000, using: &generator)!
    return (writer, generator)
  }

  private func sound(_ time: Int64, count: Int = 40) -> RecordingFrame {
    RecordingFrame(track: 1, time: time, isKeyFrame: true, bytes: [UInt8](repeating: 7, count: count))
  }

  @Test func ownSegmentsAreHalfAsLong() throws {
    for (kind, seconds) in [(RecordingInfo.Kind.own, Int64(2)), (.message, 4)] {
      var (writer, generator) = writer(kind)
      var ends: [Int64] = []
      for step in 0..<500 {
        let time = start + Int64(step) * 20_000
        if writer.add(sound(time), using: &generator) != nil { ends.append(time - start) }
      }
      #expect(ends == stride(from: seconds, to: 10, by: Int64.Stride(seconds)).map { $0 * 1_000_000 })
    }
  }

  @Test func aSegmentIsAtMostAsLargeAsAFile() throws {
    var (writer, generator) = writer()
    var files: [[UInt8]] = []
    for step in 0..<4 {
      let frame = RecordingFrame(
        track: 2, time: start + Int64(step), isKeyFrame: true, bytes: [UInt8](repeating: 1, count: 4 << 20))
      if let segment = writer.add(frame, using: &generator) { files.append(segment.file) }
    }
    if let segment = writer.end(at: start + 4, using: &generator) { files.append(segment.file) }
    #expect(files.count >= 4 && files.allSatisfy { $0.count <= SegmentHeader.maximumSegmentBytes })
    let tooLarge = RecordingFrame(
      track: 2, time: start, isKeyFrame: true, bytes: [UInt8](repeating: 1, count: (4 << 20) + 1))
    var (other, _) = self.writer()
    #expect(other.add(tooLarge, using: &generator) == nil)
    let empty = try #require(other.end(at: start, using: &generator))
    #expect(empty.file.count < 200, "it is left out")
  }

  /// The key of a sealed segment is gone.
  @Test func theDraftOpensNothingThatWasSealed() throws {
    var (writer, generator) = writer()
    var sealed: [SealedSegment] = []
    for step in 0..<300 {
      if let segment = writer.add(sound(start + Int64(step) * 20_000), using: &generator) { sealed.append(segment) }
    }
    #expect(sealed.count == 2 && writer.draft.segments == 2)
    let kept = try #require(ReelChain(writer.draft.chain.bytes, of: sealed[0].header.recording, reel: 1, number: 2))
    var asIfFirst = try #require(ReelChain(writer.draft.chain.bytes, of: sealed[0].header.recording, reel: 1))
    for segment in sealed {
      #expect(SegmentSealing.open(segment.file, under: kept, segment.header) == nil)
      #expect(SegmentSealing.open(segment.file, under: asIfFirst, segment.header) == nil)
      asIfFirst.advance()
    }
  }

  @Test func itGoesOnAfterARestartOfTheApp() async throws {
    var (writer, generator) = writer()
    var files: [Int: [UInt8]] = [:]
    func keep(_ segment: SealedSegment?) { if let segment { files[Int(segment.number)] = segment.file } }
    for step in 0..<150 { keep(writer.add(sound(start + Int64(step) * 20_000), using: &generator)) }
    let stored = writer.draft.json
    // The app is killed: what was not sealed is lost, and a gap says so.
    let draft = try #require(RecordingDraft(json: stored))
    var resumed = try #require(RecordingWriter(resuming: draft, alice, at: start + 9_000_000))
    #expect(RecordingWriter(resuming: draft, DeviceIdentity(user: "alice", device: "phone")!, at: 0) == nil)
    for step in 0..<50 { keep(resumed.add(sound(start + 9_000_000 + Int64(step) * 20_000), using: &generator)) }
    resumed.mark(.paused, at: start + 10_100_000)
    keep(resumed.end(at: start + 11_000_000, using: &generator))
    #expect(RecordingWriter(resuming: resumed.draft, alice, at: 0) == nil, "it has ended")
    #expect(files.count == 3 && resumed.draft.isEnded)

    let manifest = try manifest(resumed.draft, files)
    let reader = try await RecordingReader(
      resumed.draft.id, from: StoredFiles(manifest, files: [1: files]), as: alice, now: start / 1_000)
    let last = try #require(try await reader.segment(1, ofReel: 1))
    #expect(last.gaps.map(\.reason) == [.recorderAway] && last.gaps[0].from == start + 2_000_000)
    #expect(last.gaps[0].to == start + 9_000_000)
    let end = try #require(try await reader.segment(2, ofReel: 1))
    #expect(end.marks.map(\.event) == [.paused] && end.end == start + 11_000_000)
    #expect(await reader.reels[0].state == .complete)
  }

  /// Times survive, to the unit of each track's clock.
  @Test func timesAreReadBack() async throws {
    var (writer, generator) = writer(.message)
    var files: [Int: [UInt8]] = [:]
    var times: [Int64] = []
    for step in 0..<100 {
      times.append(start + Int64(step) * 33_333)
      let frame = RecordingFrame(
        track: 2, time: times[step], isKeyFrame: step == 0, isDiscardable: step == 5, orientation: 3, bytes: [1])
      if let segment = writer.add(frame, using: &generator) { files[Int(segment.number)] = segment.file }
    }
    if let segment = writer.end(at: start + 4_000_000, using: &generator) { files[Int(segment.number)] = segment.file }
    let reader = try await RecordingReader(
      writer.draft.id, from: StoredFiles(try manifest(writer.draft, files), files: [1: files]), as: alice,
      now: start / 1_000)
    var read: [RecordingFrame] = []
    for try await moment in await reader.moments() {
      if case .frame(let frame, _) = moment.content { read.append(frame) }
    }
    #expect(read.count == 100 && zip(read, times).allSatisfy { abs($0.time - $1) <= 24 })
    #expect(read[5].isDiscardable && read.allSatisfy { $0.orientation == 3 } && read.filter(\.isKeyFrame).count == 1)
    // From the middle: the segment in which the time is.
    var first: RecordingMoments.Moment?
    for try await moment in await reader.moments(from: start + 5_000_000) {
      first = moment
      break
    }
    #expect(first?.time ?? 0 >= start)
  }

  @Test func impossibleRecordingsAreNone() {
    var generator = SplitMix64(seed: 1)
    func begin(
      _ kind: RecordingInfo.Kind = .message, call: String? = nil, readers: [String] = [],
      tracks: [RecordingTrack] = RecordingWorld.tracks
    ) -> RecordingWriter? {
      RecordingWriter(
        alice, kind: kind, call: call, readers: readers, tracks: tracks, at: 0, using: &generator)
    }
    #expect(begin() != nil && begin(.call) == nil && begin(.own, call: KeyWorld.call.text) == nil)
    #expect(begin(readers: ["not an id"]) == nil && begin(readers: (0..<64).map { "user\($0)" }) == nil)
    #expect(begin(tracks: []) == nil && begin(tracks: RecordingWorld.tracks + RecordingWorld.tracks) == nil)
    let media = begin(readers: ["bob"])?.draft.statement.media
    #expect(media == [.audio, .video])
  }

  private func manifest(_ draft: RecordingDraft, _ files: [Int: [UInt8]]) throws -> RecordingManifest {
    let segments = try files.sorted { $0.key < $1.key }.map { _, file in
      try #require(SealedSegment(file: file, witness: ""))
    }
    return try #require(draft.manifest(segments, by: alice)).manifest
  }
}

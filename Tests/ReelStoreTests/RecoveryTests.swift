import CallMessages
import Foundation
import MediaModel
import Recording
import Seeded
import Testing

@testable import ReelStore

/// A start with the files and rows that the last run left.
@Suite(.timeLimit(.minutes(5))) struct RecoveryTests {
  private let place: TestPlace

  init() throws { place = try TestPlace() }

  private func write(_ bytes: [UInt8], to path: String) throws {
    let url = URL(fileURLWithPath: path)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
  }

  @Test func aReelGoesOnBehindTheRestart() async throws {
    var maker = SegmentMaker(id(1))
    let segments = [maker.next(), maker.next()]
    do {
      let (store, _) = try await place.open()
      try await store.begin(recording(1))
      _ = try await store.put(segments[0], into: id(1))
    }
    let (store, _) = try await place.open()
    #expect(try await store.put(segments[0], into: id(1)) == .repeated)
    #expect(try await store.put(segments[1], into: id(1)) == .stored)
    #expect(store.statistics.bytes == 2_000)
  }

  /// The process died between file and row.
  @Test func filesWithoutARowAreAdoptedAsFarAsTheyFollow() async throws {
    var (maker, stranger) = (SegmentMaker(id(1)), SegmentMaker(id(1), seed: 2))
    let segments = (0..<4).map { _ in maker.next() }
    let foreign = (0..<6).map { _ in stranger.next() }
    do {
      let (store, _) = try await place.open()
      try await store.begin(recording(1))
      _ = try await store.put(segments[0], into: id(1))
    }
    for number in 1...2 { try write(segments[number], to: place.file(1, UInt32(number))) }
    // Neither of these follows.
    try write(foreign[3], to: place.file(1, 3))
    try write(foreign[5], to: place.file(1, 5))
    try write([1, 2, 3], to: place.file(1, 3) + ".partial")
    let (store, storage) = try await place.open()
    #expect(store.statistics.counts.adopted == 2 && store.statistics.bytes == 3_000)
    #expect(try storage.segments(of: id(1), reel: 1, from: 0, limit: 9).map(\.number) == [0, 1, 2])
    let left = try FileManager.default.contentsOfDirectory(
      atPath: SegmentFolder(path: place.folder).path(of: id(1), reel: 1))
    #expect(left.sorted() == ["0", "1", "2"])
    #expect(try await store.put(segments[2], into: id(1)) == .repeated)
    #expect(try await store.put(segments[3], into: id(1)) == .stored)
    // The next start adopts nothing more.
    #expect(try await place.open().store.statistics.counts.adopted == 0)
  }

  @Test func aDamagedFileIsNotAdopted() async throws {
    var maker = SegmentMaker(id(1))
    let segment = maker.next()
    for damage in [Array(segment.prefix(95)), Array(segment.dropFirst()), []] {
      let (store, _) = try await place.open()
      try await store.begin(recording(1))
      try write(damage, to: place.file(1, 0))
      let (again, _) = try await place.open()
      #expect(again.statistics.counts.adopted == 0 && !place.exists(place.file(1, 0)))
      #expect(try await again.put(segment, into: id(1)) == .stored)
      _ = try await again.delete(id(1))
    }
  }

  /// The process died between rows and files of a deletion. Other people's files stay.
  @Test func filesThatNoRowNamesAreRemoved() async throws {
    var maker = SegmentMaker(id(7))
    let segment = maker.next()
    do {
      let (store, _) = try await place.open()
      try await store.begin(recording(1))
    }
    try write(segment, to: place.file(7, 0))
    try write(segment, to: place.file(1, 0, reel: 9))
    let own = [place.folder + "/README", place.folder + "/07/notes/1", place.folder + "/lost+found/x"]
    for path in own { try write([1], to: path) }
    let (store, _) = try await place.open()
    try await store.settle()
    #expect(!place.exists(place.file(7, 0)) && !place.exists(place.file(1, 0, reel: 9)))
    for path in own { #expect(place.exists(path), "\(path)") }
    #expect(store.statistics.counts.orphans == 2)
  }

  @Test func aRowWithoutItsFileIsNotThere() async throws {
    var maker = SegmentMaker(id(1))
    do {
      let (store, _) = try await place.open()
      try await store.begin(recording(1))
      for _ in 0..<2 { _ = try await store.put(maker.next(), into: id(1)) }
    }
    try FileManager.default.removeItem(atPath: place.file(1, 0))
    let (store, _) = try await place.open()
    #expect(try await store.byteCount(of: id(1), reel: 1, segment: 0) == nil)
    await #expect(throws: RecordingRefusal.unavailable) {
      _ = try await store.read(id(1), reel: 1, segment: 0, from: 0, count: 10)
    }
    #expect(try await store.put(maker.next(), into: id(1)) == .stored)
  }

  /// Uploads with a database that fails and starts in between: each segment that the store confirmed is there, bit by bit, and the device's next one follows.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func everyConfirmedSegmentIsThere(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    var makers = [SegmentMaker(id(1), seed: seed), SegmentMaker(id(2), seed: seed + 1_000)]
    var confirmed: [[[UInt8]]] = [[], []]
    var pending: [[UInt8]?] = [nil, nil]
    var (store, storage) = try await place.open()
    for number: UInt8 in [1, 2] { try await store.begin(recording(number)) }
    for _ in 0..<60 {
      switch random.below(10) {
      case 0:
        // The old store is not told: its server was killed.
        (store, storage) = try await place.open()
      case 1: storage.set(.fails)
      case 2: storage.set(.none)
      default:
        let which = random.below(2)
        let segment = pending[which] ?? makers[which].next(112 + random.below(3_000))
        pending[which] = segment
        guard (try? await store.put(segment, into: id(UInt8(which + 1)))) != nil else { continue }
        confirmed[which].append(segment)
        pending[which] = nil
      }
    }
    (store, storage) = try await place.open()
    for which in 0..<2 {
      let name = id(UInt8(which + 1))
      for (number, segment) in confirmed[which].enumerated() {
        let kept = try await store.read(name, reel: 1, segment: UInt32(number), from: 0, count: 9_999)
        #expect(kept == segment, "seed \(seed)")
      }
      let rows = try storage.segments(of: name, reel: 1, from: 0, limit: 99)
      // A file whose row failed was adopted; its device does not know yet.
      #expect((confirmed[which].count...confirmed[which].count + 1).contains(rows.count), "seed \(seed)")
      if let segment = pending[which] { _ = try await store.put(segment, into: name) }
      #expect(try await store.put(makers[which].next(), into: name) == .stored, "seed \(seed)")
    }
  }
}

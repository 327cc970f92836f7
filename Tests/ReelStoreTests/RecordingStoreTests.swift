import CallMessages
import Contract
import Foundation
import MediaModel
import Recording
import Testing

@testable import ReelStore

@Suite(.timeLimit(.minutes(5))) struct RecordingStoreTests {
  private let place: TestPlace

  init() throws { place = try TestPlace() }

  @Test func segmentsAreStoredAndRead() async throws {
    let (store, storage) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    let segments = [maker.next(), maker.next(300_000), maker.next(112)]
    for segment in segments { #expect(try await store.put(segment, into: id(1)) == .stored) }
    for (number, segment) in segments.enumerated() {
      let number = UInt32(number)
      #expect(try await store.byteCount(of: id(1), reel: 1, segment: number) == segment.count)
      let whole = try await store.read(id(1), reel: 1, segment: number, from: 0, count: segment.count + 9)
      #expect(whole == segment)
      let part = try await store.read(id(1), reel: 1, segment: number, from: 100, count: 12)
      #expect(part == Array(segment[100..<112]))
    }
    #expect(try await store.byteCount(of: id(1), reel: 1, segment: 3) == nil)
    let listed = try storage.segments(of: id(1), reel: 1, from: 0, limit: 9)
    #expect(listed.map(\.byteCount) == [1_000, 300_000, 112] && listed.last?.hash == maker.head.hash)
    #expect(listed.map(\.start) == [0, 2, 4].map { 1_800_000_000_000_000 + $0 * 1_000_000 })
    #expect(try storage.recordings().usage == [alice.user: StoredUsage(bytes: 301_112, recordings: 1)])
    let statistics = store.statistics
    #expect(statistics.running == 1 && statistics.bytes == 301_112 && statistics.uploadBytes == 0)
    #expect(statistics.counts.segments == 3 && statistics.counts.bytes == 301_112)
  }

  @Test func theSameSegmentTwiceIsStoredOnce() async throws {
    let (store, _) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    let segments = [maker.next(), maker.next()]
    for segment in segments { _ = try await store.put(segment, into: id(1)) }
    for segment in segments { #expect(try await store.put(segment, into: id(1)) == .repeated) }
    #expect(store.statistics.bytes == 2_000)
  }

  @Test func aSegmentThatDoesNotFollowIsToldWhereToGoOn() async throws {
    let (store, _) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(), into: id(1))
    var position = ReelPosition()
    (position.next, position.head, position.byteCount) = (1, maker.head.hash, 1_000)
    (position.start, position.latest) = (1_800_000_000_000_000, 1_800_000_000_000_000)
    var other = SegmentMaker(id(1), seed: 2)
    let wrong = [other.next(), other.next(), other.next()]
    for segment in wrong {
      await #expect(throws: RecordingRefusal.conflict(position)) { _ = try await store.put(segment, into: id(1)) }
    }
    #expect(try await store.put(maker.next(), into: id(1)) == .stored)
    #expect(store.statistics.counts.refusals == [.conflict: 3])
  }

  @Test func bytesThatAreNoSegmentOfTheReelAreRefused() async throws {
    let (store, _) = try await place.open()
    try await store.begin(recording(1))
    try await store.begin(recording(2))
    var (own, other) = (SegmentMaker(id(1)), SegmentMaker(id(2)))
    let segment = own.next()
    var (unsealed, broken) = (segment, segment)
    unsealed[5] = 0
    unsealed.replaceSubrange(72..<84, with: [UInt8](repeating: 0, count: 12))
    broken[0] = 0
    for bytes in [other.next(), unsealed, broken] {
      await #expect(throws: RecordingRefusal.invalid) { _ = try await store.put(bytes, into: id(1)) }
    }
    // Fewer bytes than were announced.
    let upload = try store.admit(id(1), reel: 1, byteCount: 1_001)
    await #expect(throws: RecordingRefusal.invalid) { _ = try await store.append(segment, of: upload) }
    store.release(upload)
    await #expect(throws: RecordingRefusal.notFound) { _ = try await store.put(segment, into: id(3)) }
    #expect(try await store.put(segment, into: id(1)) == .stored)
    #expect(!place.exists(place.file(1, 1)))
  }

  @Test func aRecordingBeginsOnce() async throws {
    let (store, _) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(), into: id(1))
    try await store.begin(recording(1))
    #expect(try await store.put(maker.next(), into: id(1)) == .stored, "it goes on")
    await #expect(throws: RecordingRefusal.taken) { try await store.begin(recording(1, of: bob)) }
    try await store.finish(id(1), heads: [1: maker.head])
    await #expect(throws: RecordingRefusal.notFound) { try await store.begin(recording(1)) }
  }

  @Test func aFinishedRecordingTakesNothingMore() async throws {
    let (store, storage) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(), into: id(1))
    let missing = maker.next()
    await #expect(throws: RecordingRefusal.self) { try await store.finish(id(1), heads: [1: maker.head]) }
    _ = try await store.put(missing, into: id(1))
    // It goes on where the database fails.
    storage.set(.fails)
    await #expect(throws: RecordingRefusal.unavailable) { try await store.finish(id(1), heads: [1: maker.head]) }
    storage.set(.none)
    try await store.finish(id(1), heads: [1: maker.head])
    try await store.finish(id(1), heads: [1: maker.head])
    await #expect(throws: RecordingRefusal.notFound) { _ = try await store.put(maker.next(), into: id(1)) }
    #expect(try await store.recording(id(1))?.state == .finished && store.statistics.running == 0)
    #expect(try await store.byteCount(of: id(1), reel: 1, segment: 1) == 1_000)
  }

  @Test func deletingRemovesRowsAndFiles() async throws {
    let (store, storage) = try await place.open()
    for number: UInt8 in [1, 2] {
      try await store.begin(recording(number))
      var maker = SegmentMaker(id(number))
      _ = try await store.put(maker.next(), into: id(number))
      if number == 2 { try await store.finish(id(number), heads: [1: maker.head]) }
    }
    for number: UInt8 in [1, 2] {
      #expect(place.exists(place.file(number, 0)))
      #expect(try await store.delete(id(number)) != nil)
      #expect(try await store.recording(id(number)) == nil && !place.exists(place.file(number, 0)))
      #expect(try await store.delete(id(number)) == nil)
    }
    #expect(store.statistics.bytes == 0)
    #expect(try storage.recordings() == StoredRecordings())
  }

  @Test func oneReelIsErased() async throws {
    let (store, _) = try await place.open()
    var two = recording(1)
    two.reels.append(StoredReel(number: 2, user: bob.user))
    try await store.begin(two)
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(), into: id(1))
    #expect(try await store.erase(id(1), reel: 1))
    #expect(try await !store.erase(id(1), reel: 1))
    #expect(!place.exists(place.file(1, 0)) && store.statistics.bytes == 0)
    #expect(try await store.recording(id(1))?.reels.map(\.number) == [2])
    await #expect(throws: RecordingRefusal.notFound) { _ = try await store.put(maker.next(), into: id(1)) }
  }

  @Test func aForgottenUsersFilesGo() async throws {
    let (store, storage) = try await place.open()
    for (number, owner) in [(1, alice), (2, bob)] as [(UInt8, Device)] {
      try await store.begin(recording(number, of: owner))
      var maker = SegmentMaker(id(number))
      _ = try await store.put(maker.next(), into: id(number))
    }
    try storage.forget(alice.user)
    store.forget(alice.user)
    try await store.settle()
    #expect(!place.exists(place.file(1, 0)) && place.exists(place.file(2, 0)))
    #expect(store.statistics.bytes == 1_000 && store.statistics.running == 1)
  }

  @Test func recordingsEndAndExpire() async throws {
    let (store, _) = try await place.open()
    try await store.begin(recording(1, expiresIn: 100))
    try await store.begin(recording(2, expiresIn: 90_000))
    for number: UInt8 in [1, 2] {
      var maker = SegmentMaker(id(number))
      _ = try await store.put(maker.next(), into: id(number))
    }
    #expect(try await !store.expire(now: start + .seconds(99)))
    #expect(try await store.recording(id(1)) != nil)
    _ = try await store.expire(now: start + .seconds(100))
    #expect(try await store.recording(id(1)) == nil && !place.exists(place.file(1, 0)))
    #expect(try await store.recording(id(2))?.state == .running)
    _ = try await store.expire(now: start + .seconds(12 * 3_600))
    #expect(try await store.recording(id(2))?.state == .cutOff)
    // It may lack its end, and is not finished any more.
    var maker = SegmentMaker(id(2))
    _ = maker.next()
    await #expect(throws: RecordingRefusal.notFound) { try await store.finish(id(2), heads: [1: maker.head]) }
    #expect(throws: RecordingRefusal.notFound) { try store.admit(id(2), reel: 1, byteCount: 1_000) }
    #expect(store.statistics.counts.expired == 1)
  }

  @Test func aUserHasARoom() async throws {
    var limits = RecordingLedger.Limits()
    limits.userBytes = 2_000
    let (store, _) = try await place.open(limits)
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(1_500), into: id(1))
    let second = maker.next(600)
    await #expect(throws: RecordingRefusal.quota) { _ = try await store.put(second, into: id(1)) }
    // A start knows what is used.
    let (again, _) = try await place.open(limits)
    await #expect(throws: RecordingRefusal.quota) { _ = try await again.put(second, into: id(1)) }
    _ = try await again.delete(id(1))
    try await again.begin(recording(2))
  }

  @Test func aSegmentComesWithItsFactsOrNotAtAll() async throws {
    let (store, storage) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    let segment = maker.next()
    func witness(_ segments: UInt32) -> ReelWitness {
      ReelWitness(
        reel: 1, segments: segments, head: Base64Bytes(maker.previous), at: start, isEnd: false, by: alice,
        sigAlg: "ES256", signature: Base64Bytes([]))
    }
    let said = witness(1)
    func put(_ facts: @escaping @Sendable (StoredSegment) throws(RecordingRefusal) -> [RecordingFact]) async throws {
      let upload = try store.admit(id(1), reel: 1, byteCount: segment.count)
      defer { store.release(upload) }
      _ = try await store.append(segment, of: upload, with: facts)
    }
    await #expect(throws: RecordingRefusal.unsigned) {
      try await put { _ throws(RecordingRefusal) in throw .unsigned }
    }
    #expect(!place.exists(place.file(1, 0)) && store.statistics.counts.refusals == [.unsigned: 1])
    let head = maker.head.hash
    try await put { stored in stored.hash == head && stored.number == 0 ? [.witness(id(1), said)] : [] }
    #expect(try storage.witnesses(of: id(1)) == [said])
    try await store.finish(id(1), heads: [1: maker.head], with: [.witness(id(1), witness(9))])
    #expect(try storage.witnesses(of: id(1)) == [witness(9)])
  }

  @Test func aRecordingBegunAgainGetsItsNewFacts() async throws {
    let (store, storage) = try await place.open()
    func note(_ number: UInt32) -> RecordingNote {
      RecordingNote(number: number, ciphertext: Base64Bytes([]), sigAlg: "ES256", signature: Base64Bytes([]))
    }
    for number: UInt32 in 0..<2 { try await store.begin(recording(1), with: [.note(id(1), note(number))]) }
    #expect(try storage.notes(of: id(1), from: 0, limit: 9) == [note(0), note(1)])
    await #expect(throws: RecordingRefusal.taken) {
      try await store.begin(recording(1, of: bob), with: [.note(id(1), note(2))])
    }
    #expect(try storage.notes(of: id(1), from: 0, limit: 9).count == 2)
  }

  // MARK: failures

  @Test func aDiskThatIsAlmostFullTakesNothing() async throws {
    let (store, _) = try await place.open(reserve: .max / 2)
    await #expect(throws: RecordingRefusal.diskFull) { try await store.begin(recording(1)) }
    let (roomy, _) = try await place.open()
    try await roomy.begin(recording(1))
    let (full, _) = try await place.open(reserve: .max / 2)
    var maker = SegmentMaker(id(1))
    let segment = maker.next()
    await #expect(throws: RecordingRefusal.diskFull) { _ = try await full.put(segment, into: id(1)) }
    #expect(!place.exists(place.file(1, 0)))
    #expect(full.statistics.counts.refusals == [.diskFull: 1])
  }

  /// The device sends the segment again, and nothing was lost.
  @Test func aDatabaseThatFailsIsTold() async throws {
    let (store, storage) = try await place.open()
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    let segment = maker.next()
    storage.set(.fails)
    await #expect(throws: RecordingRefusal.unavailable) { _ = try await store.put(segment, into: id(1)) }
    await #expect(throws: RecordingRefusal.unavailable) { try await store.begin(recording(2)) }
    #expect(store.statistics.bytes == 0 && store.statistics.counts.failures == 2)
    storage.set(.none)
    #expect(try await store.put(segment, into: id(1)) == .stored)
    try await store.begin(recording(2))
    #expect(store.statistics.bytes == 1_000)
  }

  /// A segment waits for its row; others do not wait, and after 5 s nothing more is taken.
  @Test func aDatabaseThatHangsDelaysNobodyElse() async throws {
    let clock = TestClock()
    let (store, storage) = try await place.open(clock: clock)
    try await store.begin(recording(1))
    var maker = SegmentMaker(id(1))
    let segment = maker.next()
    _ = try await store.put(segment, into: id(1))
    storage.set(.hangs)
    let waiting = Task { try await store.begin(recording(2)) }
    while storage.waitingCount == 0 { await Task.yield() }
    #expect(try await store.read(id(1), reel: 1, segment: 0, from: 0, count: 1_000) == segment)
    #expect(!store.statistics.isStuck)
    clock.advance(by: .seconds(5))
    #expect(store.statistics.isStuck)
    #expect(throws: RecordingRefusal.unavailable) { try store.admit(id(1), reel: 1, byteCount: 1_000) }
    await #expect(throws: RecordingRefusal.unavailable) { try await store.begin(recording(3)) }
    storage.set(.none)
    _ = try await waiting.value
    #expect(!store.statistics.isStuck)
    #expect(try await store.put(maker.next(), into: id(1)) == .stored)
    #expect(try await store.recording(id(2)) != nil)
    #expect(try await store.recording(id(3)) == nil)
  }

  @Test func aFolderThatCannotBeMadeIsToldTheOperator() async throws {
    try Data().write(to: URL(fileURLWithPath: place.folder))
    let error = await #expect(throws: StoreError.self) { _ = try await place.open() }
    #expect(error?.description.hasPrefix(place.folder) == true && error?.kind == .cannotOpen)
    #expect(error?.description.contains("recordings.folder") == true)
  }
}

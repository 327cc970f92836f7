import Calls
import Contract
import MediaModel
import Recording
import StoreWriting
import Testing

/// Recordings' rows.
struct RecordingRowTests {
  private let test: TestStore
  private let phone = Device(user: alice, device: DeviceID(unchecked: "phone"))

  init() throws { test = try TestStore() }

  private func id(_ number: UInt8) -> RecordingID { RecordingID([UInt8](repeating: number, count: 16))! }

  private func recording(
    _ number: UInt8, of owner: UserID = alice, reels: [(UInt32, UserID)] = [(1, alice)], expiresAt: Int = 100
  ) -> StoredRecording {
    StoredRecording(
      id: id(number), kind: .message, owner: Device(user: owner, device: DeviceID(unchecked: "phone")),
      startedAt: second(0), expiresAt: second(expiresAt), reels: reels.map { StoredReel(number: $0, user: $1) })
  }

  private func segment(_ number: UInt32, bytes: Int = 1_000) -> StoredSegment {
    StoredSegment(
      number: number, byteCount: bytes, hash: SegmentHash([UInt8](repeating: UInt8(number + 1), count: 32))!,
      start: 7 + Int64(number))
  }

  @Test(arguments: StoreKind.allCases) func aRecordingComesBackWithItsPosition(kind: StoreKind) throws {
    let store = try test.open(kind)
    var expected = recording(1, reels: [(1, alice), (2, bob)])
    try store.write([.recording(.begun(expected))])
    #expect(try store.recording(id(1)) == expected)
    for number: UInt32 in 0..<3 {
      try store.write([.recording(.segment(id(1), reel: 1, segment(number)))])
      expected.reels[0].position.append(segment(number))
    }
    try store.write([.recording(.segment(id(1), reel: 2, segment(0)))])
    expected.reels[1].position.append(segment(0))
    #expect(try test.open(kind).recording(id(1)) == expected)
    #expect(try store.recordings() == StoredRecordings(running: [expected], bytes: [alice: 4_000]))
    #expect(try store.recording(id(2)) == nil)
  }

  @Test(arguments: StoreKind.allCases) func eachFactMayBeWrittenTwice(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [StoreChange] = [
      .recording(.begun(recording(1))), .recording(.segment(id(1), reel: 1, segment(0))),
      .recording(.ended(id(1), .finished)),
    ]
    try store.write(facts)
    let once = try store.recording(id(1))
    try store.write(facts)
    #expect(try store.recording(id(1)) == once && once?.state == .finished && once?.byteCount == 1_000)
    #expect(try store.recordings() == StoredRecordings(bytes: [alice: 1_000]), "it does not run")
  }

  @Test(arguments: StoreKind.allCases) func segmentsAreListedInPages(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write([.recording(.begun(recording(1)))])
    try store.write((0..<5).map { .recording(.segment(id(1), reel: 1, segment($0))) })
    #expect(try store.segments(of: id(1), reel: 1, from: 0, limit: 3) == (0..<3).map { segment($0) })
    #expect(try store.segments(of: id(1), reel: 1, from: 3, limit: 3) == (3..<5).map { segment($0) })
    #expect(try store.segments(of: id(1), reel: 2, from: 0, limit: 3).isEmpty)
  }

  /// A transaction with facts about what is gone is written nevertheless.
  @Test(arguments: StoreKind.allCases) func aFactAboutADeletedRecordingHasNoEffect(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write([.recording(.begun(recording(1, reels: [(1, alice), (2, bob)])))])
    try store.write([.recording(.segment(id(1), reel: 2, segment(0))), .recording(.reelGone(id(1), reel: 2))])
    try store.write([.recording(.segment(id(1), reel: 2, segment(1))), .running(second(1))])
    #expect(try store.recording(id(1)) == recording(1))
    #expect(try store.segments(of: id(1), reel: 2, from: 0, limit: 9).isEmpty)
    try store.write([.recording(.segment(id(1), reel: 1, segment(0))), .recording(.gone(id(1)))])
    try store.write([
      .recording(.segment(id(1), reel: 1, segment(1))), .recording(.ended(id(1), .finished)), .running(second(2)),
    ])
    #expect(try store.recording(id(1)) == nil && store.recordings() == StoredRecordings())
    #expect(try store.segments(of: id(1), reel: 1, from: 0, limit: 9).isEmpty)
    #expect(try store.load(now: TestStore.now).ranUntil == second(2))
  }

  @Test(arguments: StoreKind.allCases) func theExpiredAreListed(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write((1...3).map { .recording(.begun(recording($0, expiresAt: 10 * Int(4 - $0)))) })
    #expect(try store.recordings(expiredAt: second(9), limit: 9).isEmpty)
    #expect(try store.recordings(expiredAt: second(20), limit: 9) == [id(3), id(2)])
    #expect(try store.recordings(expiredAt: second(99), limit: 2) == [id(3), id(2)])
  }

  @Test(arguments: StoreKind.allCases) func aFullRewriteOfTheCallsKeepsThem(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write([.recording(.begun(recording(1))), .reset])
    #expect(try store.recording(id(1)) == recording(1))
  }

  @Test(arguments: StoreKind.allCases) func aForgottenUserIsInNoRecording(kind: StoreKind) throws {
    let store = try test.open(kind)
    try store.write([
      .recording(.begun(recording(1))), .recording(.segment(id(1), reel: 1, segment(0))),
      .recording(.begun(recording(2, of: bob, reels: [(1, bob), (2, alice)]))),
      .recording(.segment(id(2), reel: 1, segment(0))), .recording(.segment(id(2), reel: 2, segment(0))),
    ])
    try store.forget(alice)
    #expect(try store.recording(id(1)) == nil)
    #expect(try store.recording(id(2))?.reels.map(\.user) == [bob])
    #expect(try store.recordings().bytes == [bob: 1_000])
  }

  /// A guest is forgotten when the call ends; what the guest said in it stays with the recording.
  @Test(arguments: StoreKind.allCases) func aForgottenGuestsReelStays(kind: StoreKind) throws {
    let store = try test.open(kind)
    let guest = UserID(unchecked: "guest~1")
    try store.write([.recording(.begun(recording(1, reels: [(1, alice), (2, guest)])))])
    try store.write([.forgotten(guest)])
    #expect(try store.recording(id(1))?.reels.map(\.user) == [alice, guest])
  }
}

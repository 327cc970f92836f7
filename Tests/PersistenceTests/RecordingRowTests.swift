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

  // MARK: what devices said

  private func record(_ number: UInt8, ticket: UInt8 = 1) -> RecordingRecord {
    let nothing = Base64Bytes([])
    return RecordingRecord(
      statement: RecordingStatement(
        id: id(number), kind: .message, call: CallID(unchecked: "c1"), publicKey: Base64Bytes([9]), media: [.audio],
        readers: [bob], at: second(1), by: phone, sigAlg: "ES256", signature: Base64Bytes([8])),
      author: RecordedPerson(
        participant: 1, user: alice, device: phone.device, name: "Al\"ice", fingerprint: nothing,
        keys: [DeviceKey(use: .sign, alg: "ES256", publicKey: Base64Bytes([7]))]),
      reelKey: ReelKey(ciphertext: nothing, sigAlg: "ES256", signature: nothing), ticket: Base64Bytes([ticket]))
  }

  private func grant(
    _ number: UInt8, to user: UserID, _ device: String? = "tablet", by author: UserID = alice, at: Int = 1
  ) -> RecordingGrant {
    RecordingGrant(
      recording: id(number), to: .init(user: user, device: device.map(DeviceID.init(unchecked:))),
      from: Device(user: author, device: phone.device), key: Base64Bytes([1]), alg: "X", ciphertext: Base64Bytes([2]),
      at: second(at), sigAlg: "ES256", signature: Base64Bytes([3]))
  }

  private func note(_ number: UInt32, _ byte: UInt8 = 1) -> RecordingNote {
    RecordingNote(number: number, ciphertext: Base64Bytes([byte]), sigAlg: "ES256", signature: Base64Bytes([3]))
  }

  private func witness(_ segments: UInt32) -> ReelWitness {
    ReelWitness(
      reel: 1, segments: segments, head: Base64Bytes([4]), at: second(2), isEnd: false, by: phone, sigAlg: "ES256",
      signature: Base64Bytes([5]))
  }

  @Test(arguments: StoreKind.allCases) func theWordsOfDevicesComeBack(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .described(id(1), record(1)), .grant(grant(1, to: bob)), .grant(grant(1, to: bob, nil)),
      .grant(grant(1, to: carol)), .note(id(1), note(1)), .note(id(1), note(0)), .witness(id(1), witness(1)),
    ]
    for _ in 0..<2 { try store.write(facts.map(StoreChange.recording)) }
    #expect(try store.record(of: id(1)) == record(1))
    #expect(try store.grants(of: id(1), to: bob) == [grant(1, to: bob, nil), grant(1, to: bob)])
    #expect(try store.notes(of: id(1)) == [note(0), note(1)])
    #expect(try store.witnesses(of: id(1)) == [witness(1)])
    #expect(try store.record(of: id(2)) == nil && store.grants(of: id(2), to: bob).isEmpty)
  }

  @Test(arguments: StoreKind.allCases) func theNewestCountsAndOfNotesTheFirst(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .described(id(1), record(1)), .described(id(1), record(1, ticket: 2)),
      .grant(grant(1, to: bob)), .grant(grant(1, to: bob, at: 9)), .witness(id(1), witness(1)),
      .witness(id(1), witness(2)), .note(id(1), note(0)), .note(id(1), note(0, 2)),
    ]
    try store.write(facts.map(StoreChange.recording))
    #expect(try store.record(of: id(1))?.ticket == Base64Bytes([2]))
    #expect(try store.grants(of: id(1), to: bob) == [grant(1, to: bob, at: 9)])
    #expect(try store.witnesses(of: id(1)) == [witness(2)] && store.notes(of: id(1)) == [note(0)])
  }

  @Test(arguments: StoreKind.allCases) func theWordsGoWithTheRecording(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .described(id(1), record(1)), .grant(grant(1, to: bob)), .note(id(1), note(0)),
      .witness(id(1), witness(1)), .grantsGone(id(1), carol), .gone(id(1)),
      // After the deletion they are about nothing.
      .described(id(1), record(1)), .grant(grant(1, to: bob)), .note(id(1), note(0)), .witness(id(1), witness(1)),
    ]
    try store.write(facts.map(StoreChange.recording))
    #expect(try store.record(of: id(1)) == nil && store.grants(of: id(1), to: bob).isEmpty)
    #expect(try store.notes(of: id(1)).isEmpty && store.witnesses(of: id(1)).isEmpty)
  }

  private func person(_ reel: UInt32, _ name: String = "Bob") -> RecordedPerson {
    RecordedPerson(
      participant: reel, user: bob, device: phone.device, name: name, fingerprint: Base64Bytes([1]), keys: [],
      joinId: Base64Bytes([6]))
  }

  private func trackKeys(_ reel: UInt32, _ epoch: UInt32, _ tracks: [UInt8], _ byte: UInt8 = 1) -> TrackKeys {
    TrackKeys(
      ExportTrackKeys(
        recording: id(1), epoch: epoch, tracks: tracks, ciphertext: Base64Bytes([byte]), sigAlg: "ES256",
        signature: Base64Bytes([5])), of: reel, listHash: Base64Bytes([2]))
  }

  @Test(arguments: StoreKind.allCases) func theReelsOfACallHavePeopleAndKeys(kind: StoreKind) throws {
    let store = try test.open(kind)
    var expected = recording(1, reels: [])
    let reel = StoredReel(number: 2, user: bob)
    let facts: [RecordingFact] = [
      .begun(expected), .reel(id(1), reel, person(2)), .trackKeys(id(1), trackKeys(2, 9, [2])),
      .trackKeys(id(1), trackKeys(2, 8, [1, 2])), .trackKeys(id(1), trackKeys(2, 9, [1])),
      // The first keys of the same tracks stay, and there are none without a reel.
      .trackKeys(id(1), trackKeys(2, 9, [1], 4)), .trackKeys(id(1), trackKeys(3, 9, [1])),
    ]
    for _ in 0..<2 { try store.write(facts.map(StoreChange.recording)) }
    expected.reels = [reel]
    #expect(try store.recording(id(1)) == expected)
    #expect(try store.people(of: id(1)) == [person(2)])
    #expect(
      try store.trackKeys(of: id(1)) == [trackKeys(2, 8, [1, 2]), trackKeys(2, 9, [1]), trackKeys(2, 9, [2])])
    try store.write([.recording(.reelGone(id(1), reel: 2))])
    #expect(try store.people(of: id(1)).isEmpty && store.trackKeys(of: id(1)).isEmpty)
    try store.write([.recording(.reel(id(1), reel, person(2, "Bobby"))), .recording(.gone(id(1)))])
    #expect(try store.people(of: id(1)).isEmpty)
  }

  @Test(arguments: StoreKind.allCases) func aUsersRecordingsAreListed(kind: StoreKind) throws {
    let store = try test.open(kind)
    var own = recording(3, of: bob, reels: [(1, bob)])
    (own.kind, own.startedAt) = (.own, second(5))
    var facts: [RecordingFact] = [.begun(recording(1)), .begun(recording(2)), .begun(own)]
    facts += [.grant(grant(2, to: bob)), .grant(grant(2, to: bob, nil)), .grant(grant(3, to: bob, by: bob))]
    try store.write(facts.map(StoreChange.recording))
    func listed(
      _ user: UserID, before: Int = 99, limit: Int = 9, kind: RecordingKind? = nil, role: RecordingRole? = nil
    ) throws -> [RecordingID] {
      let filter = RecordingFilter(before: second(before), limit: limit, kind: kind, role: role)
      return try store.recordings(of: user, filter).map(\.id)
    }
    #expect(try listed(bob) == [id(3), id(2)], "each once, the newest first")
    #expect(try listed(bob, role: .owner) == [id(3)] && listed(bob, role: .reader) == [id(2)])
    #expect(try listed(bob, kind: .own) == [id(3)] && listed(bob, kind: .message, role: .owner).isEmpty)
    #expect(try listed(bob, before: 5) == [id(2)] && listed(bob, limit: 1) == [id(3)])
    #expect(try listed(alice) == [id(1), id(2)] && listed(carol).isEmpty)
    try store.write([.recording(.grantsGone(id(2), bob))])
    #expect(try listed(bob) == [id(3)])
  }

  @Test(arguments: StoreKind.allCases) func grantsToAndByAForgottenUserGo(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .grant(grant(1, to: bob)), .grant(grant(1, to: carol, by: bob)),
      .grant(grant(1, to: alice)),
    ]
    try store.write(facts.map(StoreChange.recording))
    try store.forget(bob)
    #expect(try store.grants(of: id(1), to: bob).isEmpty && store.grants(of: id(1), to: carol).isEmpty)
    #expect(try store.grants(of: id(1), to: alice) == [grant(1, to: alice)])
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

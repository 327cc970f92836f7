import CallMessages
import Contract
import MediaModel
import Recording
import StoreWriting
import Testing

/// Recordings' rows.
struct RecordingRowTests: RecordingSamples {
  private let test: TestStore

  init() throws { test = try TestStore() }

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
    #expect(
      try store.recordings()
        == StoredRecordings(running: [expected], usage: [alice: StoredUsage(bytes: 4_000, recordings: 1)]))
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
    #expect(
      try store.recordings() == StoredRecordings(usage: [alice: StoredUsage(bytes: 1_000, recordings: 1)]),
      "it does not run")
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

  @Test(arguments: StoreKind.allCases) func theWordsOfDevicesComeBack(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .described(id(1), record(1)), .grant(grant(1, to: bob)), .grant(grant(1, to: bob, nil)),
      .grant(grant(1, to: carol)), .note(id(1), note(1)), .note(id(1), note(0)), .witness(id(1), witness(1)),
    ]
    for _ in 0..<2 { try store.write(facts.map(StoreChange.recording)) }
    #expect(try store.record(of: id(1)) == record(1))
    #expect(try store.grants(of: id(1), to: bob) == [grant(1, to: bob, nil), grant(1, to: bob)])
    #expect(try store.notes(of: id(1), from: 0, limit: 9) == [note(0), note(1)])
    #expect(try store.notes(of: id(1), from: 1, limit: 9) == [note(1)])
    #expect(try store.notes(of: id(1), from: 0, limit: 1) == [note(0)])
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
    #expect(try store.witnesses(of: id(1)) == [witness(2)] && store.notes(of: id(1), from: 0, limit: 9) == [note(0)])
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
    #expect(try store.notes(of: id(1), from: 0, limit: 9).isEmpty && store.witnesses(of: id(1)).isEmpty)
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
      _ user: UserID?, before: Int = 99, limit: Int = 9, kind: RecordingKind? = nil, role: RecordingRole? = nil
    ) throws -> [RecordingID] {
      let filter = RecordingFilter(before: second(before), limit: limit, kind: kind, role: role)
      return try store.recordings(of: user, filter).map(\.id)
    }
    #expect(try listed(bob) == [id(3), id(2)], "each once, the newest first")
    #expect(try listed(bob, role: .owner) == [id(3)] && listed(bob, role: .reader) == [id(2)])
    #expect(try listed(bob, kind: .own) == [id(3)] && listed(bob, kind: .message, role: .owner).isEmpty)
    #expect(try listed(bob, before: 5) == [id(2)] && listed(bob, limit: 1) == [id(3)])
    #expect(try listed(alice) == [id(1), id(2)] && listed(carol).isEmpty)
    #expect(try listed(nil) == [id(3), id(1), id(2)] && listed(nil, limit: 2) == [id(3), id(1)])
    try store.write([.recording(.grantsGone(id(2), bob))])
    #expect(try listed(bob) == [id(3)])
  }

  @Test(arguments: StoreKind.allCases) func aDraftIsKeptOnceItIsShared(kind: StoreKind) throws {
    let store = try test.open(kind)
    var draft = recording(1)
    draft.isDraft = true
    try store.write([.recording(.begun(draft)), .recording(.begun(recording(2)))])
    #expect(try store.recording(id(1)) == draft)
    #expect(try store.recordings().usage == [alice: StoredUsage(recordings: 2, drafts: 1)])
    try store.write([.recording(.kept(id(1), until: second(500)))])
    (draft.isDraft, draft.expiresAt) = (false, second(500))
    #expect(try store.recording(id(1)) == draft)
    #expect(try store.recordings().usage == [alice: StoredUsage(recordings: 2)])
  }

  @Test(arguments: StoreKind.allCases) func readersAreKnownWithWhatTheyDid(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .grant(grant(1, to: bob)), .grant(grant(1, to: bob, nil)),
      .reader(id(1), carol, .alerted(second(3))), .reader(id(1), bob, .seen(second(4))),
      .reader(id(1), bob, .seen(second(9))), .reader(id(1), bob, .opened), .reader(id(2), bob, .opened),
    ]
    for _ in 0..<2 { try store.write(facts.map(StoreChange.recording)) }
    #expect(
      try store.readers(of: id(1)) == [
        StoredReader(user: bob, grants: 2, isOpened: true, seenAt: second(4)),
        StoredReader(user: carol, grants: 0, alertedAt: second(3)),
      ])
    #expect(try store.readers(of: id(2)).isEmpty, "there is no such recording")
    try store.write([.recording(.reader(id(1), carol, .reached(second(5)))), .recording(.grantsGone(id(1), bob))])
    #expect(
      try store.readers(of: id(1)) == [
        StoredReader(user: carol, grants: 0, alertedAt: second(3), reachedAt: second(5))
      ])
    try store.forget(carol)
    #expect(try store.readers(of: id(1)).isEmpty)
  }

  @Test(arguments: StoreKind.allCases) func recordingsThatWereNotOpenedAreCounted(kind: StoreKind) throws {
    let store = try test.open(kind)
    var facts: [RecordingFact] = (1...3).map { .begun(recording($0)) }
    facts += [.grant(grant(1, to: bob)), .grant(grant(1, to: bob, nil)), .grant(grant(2, to: bob))]
    facts += [.grant(grant(3, to: bob, by: carol)), .grant(grant(3, to: carol))]
    try store.write(facts.map(StoreChange.recording))
    #expect(try store.unopened(from: alice, by: bob) == 2 && store.unopened(from: carol, by: bob) == 1)
    try store.write([.recording(.reader(id(1), bob, .seen(second(1)))), .recording(.reader(id(2), carol, .opened))])
    #expect(try store.unopened(from: alice, by: bob) == 2)
    try store.write([.recording(.reader(id(1), bob, .opened))])
    #expect(try store.unopened(from: alice, by: bob) == 1)
    try store.write([.recording(.gone(id(2)))])
    #expect(try store.unopened(from: alice, by: bob) == 0)
    var ofCall = recording(4, reels: [])
    ofCall.kind = .call
    try store.write([.recording(.begun(ofCall)), .recording(.grant(grant(4, to: bob)))])
    #expect(try store.unopened(from: alice, by: bob) == 0, "bob cannot open it yet")
    try store.write([.recording(.ended(id(4), .finished))])
    #expect(try store.unopened(from: alice, by: bob) == 1)
  }

  @Test(arguments: StoreKind.allCases) func alertsWaitUntilTheyHaveReachedTheirUsers(kind: StoreKind) throws {
    let store = try test.open(kind)
    let facts: [RecordingFact] = [
      .begun(recording(1)), .begun(recording(2)), .reader(id(2), bob, .alerted(second(1))),
      .reader(id(1), carol, .alerted(second(2))), .reader(id(1), bob, .alerted(second(2))),
      .reader(id(1), alice, .opened),
    ]
    try store.write(facts.map(StoreChange.recording))
    #expect(
      try store.alerts() == [
        StoredAlert(recording: id(2), user: bob, at: second(1)),
        StoredAlert(recording: id(1), user: bob, at: second(2)),
        StoredAlert(recording: id(1), user: carol, at: second(2)),
      ])
    try store.write([.recording(.reader(id(1), bob, .reached(second(3)))), .recording(.gone(id(2)))])
    #expect(try store.alerts() == [StoredAlert(recording: id(1), user: carol, at: second(2))])
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
    #expect(try store.recordings().usage == [bob: StoredUsage(bytes: 1_000, recordings: 1)])
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

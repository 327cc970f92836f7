import CallMessages
import Contract
import MediaModel
import Persistence
import Recording
import ReelStore
import StoreWriting
import Testing

@testable import ConclaveServer

/// Requests about recordings (protocol section 13.4).
@Suite(.timeLimit(.minutes(5))) struct RecordingServiceTests {
  private let house: RecordingHouse

  init() async throws { house = try await RecordingHouse() }

  private func listed(_ device: RecordingDevice, _ body: ListRecordings = .init()) async throws -> [RecordingEntry] {
    guard case .recordings(let list) = try await house.ask(.list(body), by: device).get() else { return [] }
    return list.recordings
  }

  private func manifest(_ id: RecordingID, for device: RecordingDevice) async throws -> RecordingManifest {
    guard case .recording(let manifest) = try await house.ask(.get(GetRecording(id: id)), by: device).get() else {
      throw RecordingHouse.Unexpected()
    }
    return manifest
  }

  /// The whole way of a message: from the device that records it to the one that plays it.
  @Test func aMessageReachesItsReader() async throws {
    try house.acquaint(house.alice, house.bob)
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording, grants: [recording.grant(to: house.alice)])
    let segments = [recording.segment(), recording.segment(5_000)]
    for segment in segments { #expect(try await house.put(segment, of: recording, bearer: ticket).status == 201) }
    _ = try await house.ask(.finish(recording.finish()), by: house.alice).get()
    #expect(try await listed(house.bob).isEmpty, "nothing is shared yet")
    let grant = recording.grant(to: house.bob)
    let share = ShareRecording(id: recording.id, grants: [grant], notes: [recording.note(0)])
    #expect(house.announcements.takeShared().map(\.grant?.to.user) == [house.alice.user])
    _ = try await house.ask(.share(share), by: house.alice).get()
    let shared = RecordingShared(recording: recording.id, kind: .message, by: house.alice.address, grant: grant)
    #expect(house.announcements.take() == [.shared([shared], newcomers: [house.bob.user])])

    let entry = try #require(try await listed(house.bob).first)
    #expect(entry.id == recording.id && entry.role == .reader && entry.by == house.alice.address)
    #expect(entry.bytes == 6_000 && entry.state == .finished && entry.grant == grant && entry.kind == .message)
    #expect(entry.call == recording.statement.call)
    let kept = entry.expiresAt.milliseconds - entry.startedAt.milliseconds
    #expect(kept >= 30 * 86_400_000 && kept < 31 * 86_400_000, "from the moment on when it was shared")
    #expect(entry.seconds == 2 && entry.heardAt == nil && entry.seenAt == nil)
    let manifest = try await manifest(recording.id, for: house.bob)
    #expect(manifest.statement == recording.statement && manifest.grants == [grant] && manifest.state == .finished)
    #expect(manifest.notes.map(\.number) == [0])
    #expect(manifest.reelKeys.map(\.reel) == [1] && manifest.people.map(\.user) == [house.alice.user])
    #expect(manifest.people.first?.fingerprint.bytes == house.alice.fingerprint)
    var index = ReelIndex(recording: recording.id, reel: 1)
    try index.append(try #require(manifest.reels.first))
    #expect(index.entries.map(\.byteCount) == [1_000, 5_000])
    let witness = try #require(manifest.witnesses.first)
    let head = ReelHead(
      segments: witness.segments, hash: try #require(SegmentHash(witness.head.bytes)), isEnd: witness.isEnd)
    #expect(index.finding(witnesses: [head]) == .complete)
  }

  @Test func otherPeopleSeeNothing() async throws {
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    _ = try await house.put(recording.segment(), of: recording, bearer: ticket)
    // Bob is named in the statement, and has no grant.
    for stranger in [house.bob, house.carol] {
      #expect(try await listed(stranger).isEmpty)
      let error = await house.error(of: .get(GetRecording(id: recording.id)), by: stranger)
      #expect(error?.code == .recordingNotFound)
      let share = ShareRecording(id: recording.id, grants: [recording.grant(to: stranger, by: stranger)])
      #expect(await house.error(of: .share(share), by: stranger)?.code == .recordingNotFound)
      _ = try await house.ask(.delete(DeleteRecordings(ids: [recording.id])), by: stranger).get()
    }
    #expect(try await listed(house.alice).map(\.id) == [recording.id])
  }

  @Test func aReaderPassesItOnAndLeavesIt() async throws {
    try house.acquaint(house.alice, house.bob)
    try house.acquaint(house.bob, house.carol)
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    let passed = recording.grant(to: house.carol, by: house.bob)
    _ = try await house.ask(.share(ShareRecording(id: recording.id, grants: [passed])), by: house.bob).get()
    #expect(try await manifest(recording.id, for: house.carol).grants == [passed])
    // Notes are the recording device's.
    let noted = ShareRecording(id: recording.id, grants: [], notes: [recording.note(0, by: house.bob)])
    #expect(await house.error(of: .share(noted), by: house.bob)?.code == .recordingNotAllowed)
    _ = try await house.ask(.delete(DeleteRecordings(ids: [recording.id])), by: house.bob).get()
    #expect(try await listed(house.bob).isEmpty)
    #expect(try await listed(house.carol).count == 1)
    _ = try await house.ask(.delete(DeleteRecordings(ids: [recording.id])), by: house.alice).get()
    #expect(try await listed(house.carol).isEmpty)
    #expect(try house.storage.recording(recording.id) == nil)
  }

  /// Else anybody could fill anybody's list.
  @Test func aStrangerGetsNoRecordings() async throws {
    let recording = TestRecording(house.alice)
    let start = RecordingsRequest.start(recording.start(grants: [recording.grant(to: house.bob)]))
    #expect(try await house.started(start, by: house.alice).results == [house.bob.user: .unavailable])
    #expect(house.announcements.take().isEmpty)
    _ = try await house.start(recording, grants: [recording.grant(to: house.alice)])
    let share = ShareRecording(id: recording.id, grants: [recording.grant(to: house.bob)])
    _ = house.announcements.take()
    #expect(await house.error(of: .share(share), by: house.alice)?.code == .recordingNotAllowed)
    #expect(try await listed(house.bob).isEmpty && house.announcements.take().isEmpty)
  }

  @Test func aStatementThatTheDeviceDidNotSignIsRefused() async throws {
    let changes: [(String, (inout RecordingStatement) -> Void)] = [
      ("statement.kind", { $0.kind = .call }), ("statement.by", { $0.by = house.bob.address }),
      ("statement.media", { $0.media = [] }), ("statement.media", { $0.media = [.audio, .audio] }),
      ("statement.readers", { $0.readers = (0..<65).map { UserID(unchecked: "u\($0)") } }),
      ("statement.readers", { $0.readers = [UserID(unchecked: "a"), UserID(unchecked: "a")] }),
      ("statement.publicKey", { $0.publicKey.bytes[90] ^= 1 }), ("statement.publicKey", { $0.publicKey.bytes = [] }),
      ("statement.signature", { $0.signature = Base64Bytes([UInt8](repeating: 1, count: 64)) }),
      ("statement.signature", { $0.sigAlg = "PS256" }),
    ]
    for (field, change) in changes {
      let recording = TestRecording(house.alice, change: change)
      let error = await house.error(of: .start(recording.start()), by: house.alice)
      #expect(error?.code == .requestInvalid && error?.field == field)
    }
    // Each was signed as it stands; one that was changed afterwards is refused, too.
    for (_, change) in changes.prefix(8) {
      var start = TestRecording(house.alice).start()
      change(&start.statement)
      #expect(await house.error(of: .start(start), by: house.alice)?.code == .requestInvalid)
    }
    #expect(try await listed(house.alice).isEmpty)
  }

  @Test func keysGrantsAndNotesOfOthersAreRefused() async throws {
    try house.acquaint(house.alice, house.bob)
    let (recording, other) = (TestRecording(house.alice), TestRecording(house.alice, seed: 2))
    var start = recording.start()
    start.reelKey = other.start().reelKey
    #expect(await house.error(of: .start(start), by: house.alice)?.field == "reelKey")
    var changed = recording.grant(to: house.bob)
    changed.to.device = nil
    let long = recording.grant(to: house.bob, alg: String(repeating: "x", count: 65))
    for grant in [recording.grant(to: house.bob, by: house.bob), other.grant(to: house.bob), changed, long] {
      #expect(await house.error(of: .start(recording.start(grants: [grant])), by: house.alice)?.field == "grants")
    }
    for note in [recording.note(0, by: house.bob), other.note(0), recording.note(1_000)] {
      #expect(await house.error(of: .start(recording.start(notes: [note])), by: house.alice)?.field == "notes")
    }
    _ = try await house.start(recording)
    let note = other.note(3)
    let add = AddNote(
      id: recording.id, number: 3, ciphertext: note.ciphertext, sigAlg: note.sigAlg, signature: note.signature)
    #expect(await house.error(of: .note(add), by: house.alice)?.code == .requestInvalid)
    #expect(await house.error(of: .note(add), by: house.bob)?.code == .recordingNotAllowed)
  }

  @Test func manyGrantsAreTooMany() async throws {
    let recording = TestRecording(house.alice)
    let grants = Array(repeating: recording.grant(to: house.alice), count: 33)
    #expect(
      await house.error(of: .start(recording.start(grants: grants)), by: house.alice)?.code == .requestTooLarge)
    _ = try await house.start(recording, grants: Array(grants.prefix(32)))
  }

  @Test func aRecordingIsRegisteredAgainForANewTicket() async throws {
    var recording = TestRecording(house.alice)
    let first = try await house.start(recording)
    let segment = recording.segment()
    #expect(try await house.put(segment, of: recording, bearer: first).status == 201)
    let second = try await house.start(recording)
    #expect(first != second && second.hasPrefix("upload~"))
    let next = recording.segment()
    #expect(try await house.put(next, of: recording, bearer: first).status == 403)
    #expect(try await house.put(next, of: recording, bearer: second).status == 201)
  }

  @Test func anIDBelongsToOneStatement() async throws {
    _ = try await house.start(TestRecording(house.alice))
    let other = TestRecording(house.alice, change: { $0.media = [.video] })
    #expect(await house.error(of: .start(other.start()), by: house.alice)?.code == .recordingNotAllowed)
    let foreign = TestRecording(house.bob)
    #expect(foreign.id == other.id)
    #expect(await house.error(of: .start(foreign.start()), by: house.bob)?.code == .recordingNotAllowed)
  }

  @Test func aRecordingFinishesWhenAllOfItIsThere() async throws {
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording)
    let segments = [recording.segment(), recording.segment()]
    _ = try await house.put(segments[0], of: recording, bearer: ticket)
    let early = await house.error(of: .finish(recording.finish()), by: house.alice)
    #expect(early?.code == .recordingIncomplete && early?.next == 1)
    _ = try await house.put(segments[1], of: recording, bearer: ticket)
    var forged = recording.finish()
    forged.reels[0].at.milliseconds += 1
    #expect(await house.error(of: .finish(forged), by: house.alice)?.field == "reels")
    #expect(await house.error(of: .finish(recording.finish()), by: house.bob)?.code == .recordingNotAllowed)
    _ = try await house.ask(.finish(recording.finish()), by: house.alice).get()
    #expect(try await listed(house.alice).first?.state == .finished)
    #expect(await house.error(of: .start(recording.start()), by: house.alice)?.code == .recordingEnded)
    #expect(try await house.put(recording.segment(), of: recording, bearer: ticket).status == 410)
  }

  @Test func aListIsFilteredAndOfBoundedLength() async throws {
    try house.acquaint(house.alice, house.bob)
    for seed: UInt64 in 1...3 {
      let recording = TestRecording(house.alice, seed: seed, change: { if seed == 3 { $0.kind = .own } })
      _ = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    }
    _ = try await house.start(TestRecording(house.bob, seed: 4))
    #expect(try await listed(house.bob).count == 4)
    #expect(try await listed(house.bob, ListRecordings(role: .reader)).count == 3)
    #expect(try await listed(house.bob, ListRecordings(role: .owner)).count == 1)
    #expect(try await listed(house.bob, ListRecordings(kind: .own)).count == 1)
    #expect(try await listed(house.bob, ListRecordings(limit: 2)).count == 2)
    #expect(try await listed(house.bob, ListRecordings(before: Timestamp(milliseconds: 0))).isEmpty)
  }

  @Test func aLongReelComesInPages() async throws {
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording)
    let segments = (0..<UInt32(RecordingCatalogue.page + 3)).map { number in
      StoredSegment(number: number, byteCount: 200, hash: SegmentHash([UInt8](repeating: 1, count: 32))!, start: 5)
    }
    try house.storage.write(segments.map { .recording(.segment(recording.id, reel: 1, $0)) })
    #expect(try await manifest(recording.id, for: house.alice).reels.first?.segments.count == RecordingCatalogue.page)
    let rest = GetRecording(id: recording.id, from: UInt32(RecordingCatalogue.page))
    guard case .recording(let last) = try await house.ask(.get(rest), by: house.alice).get() else {
      throw RecordingHouse.Unexpected()
    }
    #expect(last.reels.first?.segments.count == 3 && last.reels.first?.from == UInt32(RecordingCatalogue.page))
  }

  // MARK: readers

  @Test func readersWhoCannotBeReachedAreNamed() async throws {
    try house.acquaint(house.alice, house.bob)
    let recording = TestRecording(house.alice) { $0.readers.append(UserID(unchecked: "carol")) }
    let (bob, carol) = (house.bob.user, house.carol.user)
    let grants = [house.bob, house.carol].map { recording.grant(to: $0) }
    func results(
      _ grants: [RecordingGrant]?, _ change: (inout RecordingQuery) -> Void = { _ in }
    ) async throws -> [UserID: ReaderResult] {
      try await house.started(.start(recording.start(grants: grants)), by: house.alice, change: change).results
    }
    // Before a message is recorded: nothing is said of one who can have it.
    #expect(try await results(nil) == [carol: .unavailable])
    #expect(try await results(nil) { $0.keyless = [bob, carol] } == [bob: .noKeys, carol: .unavailable])
    #expect(try await results(grants) == [bob: .shared, carol: .unavailable])
    // The app's back end decides, whatever the history says.
    #expect(try await results(grants) { $0.allowed = [carol] } == [bob: .unavailable, carol: .shared])
    #expect(try await listed(house.carol).count == 1)
    // A guest is no reader.
    let guest = RecordingDevice("guest~1", "phone")
    try house.acquaint(house.alice, guest)
    let other = TestRecording(house.alice, seed: 2)
    let toGuest = RecordingsRequest.start(other.start(grants: [other.grant(to: guest)]))
    #expect(try await house.started(toGuest, by: house.alice).results[guest.user] == .unavailable)
    let share = RecordingsRequest.share(ShareRecording(id: other.id, grants: [other.grant(to: guest)]))
    #expect(await house.error(of: share, by: house.alice)?.code == .recordingNotAllowed)
  }

  @Test func aContactIsAlertedOnceAndToldWithItsGrants() async throws {
    try house.acquaint(house.alice, house.bob)
    let recording = TestRecording(house.alice) {
      $0.kind = .own
      $0.readers = ["alice", "bob", "carol"].map(UserID.init(unchecked:))
    }
    let grants = [house.alice, house.bob].map { recording.grant(to: $0) }
    let start = RecordingsRequest.start(recording.start(grants: grants, alert: true))
    #expect(
      try await house.started(start, by: house.alice).results == [
        house.bob.user: .shared, house.carol.user: .unavailable,
      ])
    let news = house.announcements.take()
    guard news.count == 2, case .shared(let shared, let newcomers) = news[0], case .alert(let alert) = news[1] else {
      throw RecordingHouse.Unexpected()
    }
    #expect(shared.map(\.grant) == [grants[0]] && newcomers.isEmpty)
    #expect(alert.recording == recording.id && alert.by == house.alice.address && alert.kind == .own)
    #expect(alert.users == [house.bob.user: [grants[1]]] && !alert.isRestored)
    // The reply was lost.
    _ = try await house.started(start, by: house.alice)
    #expect(house.announcements.take().isEmpty)
    // After a restart it goes on, until it has reached its user.
    try await house.service.restoreAlerts()
    guard case .alert(let restored)? = house.announcements.take().first else { throw RecordingHouse.Unexpected() }
    #expect(restored.isRestored && restored.users == alert.users && restored.at == alert.at)
    let known = try #require(try await manifest(recording.id, for: house.alice).readers)
    #expect(known.map(\.user) == [house.bob.user] && known[0].alertedAt == alert.at && known[0].reachedAt == nil)
    try house.storage.write([.recording(.reader(recording.id, house.bob.user, .reached(alert.at)))])
    try await house.service.restoreAlerts()
    #expect(house.announcements.take().isEmpty)
    #expect(try await manifest(recording.id, for: house.alice).readers?.first?.reachedAt == alert.at)
    #expect(try await manifest(recording.id, for: house.bob).readers == nil, "readers do not see each other")
  }

  @Test func theOwnerIsToldOnceWhoHasSeenIt() async throws {
    try house.acquaint(house.alice, house.bob)
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    _ = house.announcements.take()
    let seen = RecordingsRequest.seen(SeenRecording(id: recording.id))
    for stranger in [house.carol, house.alice] {
      #expect(await house.error(of: seen, by: stranger)?.code == .recordingNotFound)
    }
    _ = try await house.ask(seen, by: house.bob).get()
    let mention = RecordingMention(recording: recording.id, by: house.bob.address)
    #expect(house.announcements.take() == [.seen(mention, owner: house.alice.user)])
    _ = try await house.ask(seen, by: house.bob).get()
    #expect(house.announcements.take().isEmpty)
    #expect(try await listed(house.bob).first?.seenAt != nil)
    #expect(try await listed(house.alice).first?.seenAt == listed(house.bob).first?.seenAt)
    #expect(try await manifest(recording.id, for: house.alice).readers?.first?.seenAt != nil)
  }

  @Test func aReaderWhoOpensRecordingsGetsMore() async throws {
    try house.acquaint(house.alice, house.bob)
    for seed: UInt64 in 1...10 {
      let recording = TestRecording(house.alice, seed: seed)
      _ = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    }
    let last = TestRecording(house.alice, seed: 11)
    _ = try await house.start(last, grants: [last.grant(to: house.alice)])
    let share = RecordingsRequest.share(ShareRecording(id: last.id, grants: [last.grant(to: house.bob)]))
    let refused = await house.error(of: share, by: house.alice)
    #expect(refused?.code == .recordingNotAllowed && refused?.field == "grants")
    _ = try await manifest(TestRecording(house.alice, seed: 4).id, for: house.bob)
    _ = try await house.ask(share, by: house.alice).get()
    #expect(try await listed(house.bob).count == 11)
  }

  @Test func everybodyConcernedIsToldOfADeletion() async throws {
    try house.acquaint(house.alice, house.bob)
    try house.acquaint(house.alice, house.carol)
    let recording = TestRecording(house.alice)
    let grants = [house.bob, house.carol].map { recording.grant(to: $0) }
    _ = try await house.start(recording, grants: grants)
    _ = house.announcements.take()
    let delete = RecordingsRequest.delete(DeleteRecordings(ids: [recording.id, TestRecording(house.bob, seed: 9).id]))
    _ = try await house.ask(delete, by: house.bob).get()
    let byBob = RecordingRemoved(recording: recording.id, by: house.bob.address)
    #expect(house.announcements.take() == [.removed(byBob, users: [house.bob.user])])
    _ = try await house.ask(delete, by: house.bob).get()
    #expect(house.announcements.take().isEmpty)
    _ = try await house.ask(delete, by: house.alice).get()
    let byAlice = RecordingRemoved(recording: recording.id, by: house.alice.address)
    #expect(house.announcements.take() == [.removed(byAlice, users: [house.alice.user, house.carol.user])])
    // The operator deletes for nobody in particular.
    let other = TestRecording(house.alice, seed: 2)
    _ = try await house.start(other)
    _ = house.announcements.take()
    #expect(try await house.service.recordings(of: nil, limit: 9).map(\.id) == [other.id])
    #expect(try await house.service.recordings(of: house.bob.user, limit: 9).isEmpty)
    #expect(try await house.service.delete(other.id))
    #expect(
      house.announcements.take() == [
        .removed(RecordingRemoved(recording: other.id, by: nil), users: [house.alice.user])
      ])
    #expect(try await !house.service.delete(other.id))
  }

  @Test func aReelIsErasedByWhoIsInIt() async throws {
    try house.acquaint(house.alice, house.bob)
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    func erase(_ participant: UInt32? = nil) -> RecordingsRequest {
      .erase(EraseReel(id: recording.id, participant: participant))
    }
    #expect(await house.error(of: erase(), by: house.carol)?.code == .recordingNotFound)
    for participant in [nil, 1, 2] as [UInt32?] {
      #expect(await house.error(of: erase(participant), by: house.bob)?.code == .recordingNotAllowed)
    }
    #expect(await house.error(of: erase(2), by: house.alice)?.field == "participant")
    _ = house.announcements.take()
    // The last reel takes the recording with it.
    _ = try await house.ask(erase(1), by: house.alice).get()
    #expect(try await listed(house.bob).isEmpty && house.announcements.take().count == 1)
    #expect(try house.storage.recording(recording.id) == nil)
  }

  @Test func aRecordingThatNobodyCanOpenGoesAfterADay() async throws {
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording)
    let draft = try #require(try await listed(house.alice).first)
    #expect(draft.expiresAt.milliseconds - draft.startedAt.milliseconds == 86_400_000)
    _ = try await house.start(recording, grants: [recording.grant(to: house.alice)])
    let kept = try #require(try await listed(house.alice).first)
    #expect(kept.expiresAt.milliseconds - kept.startedAt.milliseconds >= 30 * 86_400_000)
  }

  @Test func notesComeInPages() async throws {
    let recording = TestRecording(house.alice)
    _ = try await house.start(recording)
    let notes = (0..<UInt32(RecordingCatalogue.notesOfPage + 3)).map { recording.note($0) }
    try house.storage.write(notes.map { .recording(.note(recording.id, $0)) })
    #expect(try await manifest(recording.id, for: house.alice).notes == Array(notes.dropLast(3)))
    let rest = GetRecording(id: recording.id, notes: UInt32(RecordingCatalogue.notesOfPage))
    guard case .recording(let last) = try await house.ask(.get(rest), by: house.alice).get() else {
      throw RecordingHouse.Unexpected()
    }
    #expect(last.notes == Array(notes.suffix(3)))
  }

  // MARK: live

  @Test func aDeviceThatHasItOpenIsToldOfEachChange() async throws {
    try house.acquaint(house.alice, house.bob)
    var recording = TestRecording(house.alice)
    let ticket = try await house.start(recording, grants: [recording.grant(to: house.bob)])
    _ = try await manifest(recording.id, for: house.bob)
    _ = house.announcements.take()
    await house.service.tellFollowers()
    #expect(house.announcements.take().isEmpty, "nothing has changed")
    let segment = recording.segment()
    _ = try await house.put(segment, of: recording, bearer: ticket)
    let note = recording.note(4)
    let add = AddNote(
      id: recording.id, number: 4, ciphertext: note.ciphertext, sigAlg: note.sigAlg, signature: note.signature)
    _ = try await house.ask(.note(add), by: house.alice).get()
    await house.service.tellFollowers()
    let reel = RecordingChanged.Reel(participant: 1, segments: 1, head: Base64Bytes(sha256(segment.bytes)))
    let change = RecordingChanged(recording: recording.id, state: .running, reels: [reel], notes: 5)
    #expect(
      house.announcements.take() == [.changed(change, to: [house.bob.address], owner: house.alice.user)])
    _ = try await house.ask(.finish(recording.finish()), by: house.alice).get()
    await house.service.tellFollowers()
    let end = RecordingChanged(recording: recording.id, state: .finished, reels: [reel])
    #expect(house.announcements.take() == [.changed(end, to: [house.bob.address], owner: house.alice.user)])
    await house.service.tellFollowers()
    #expect(house.announcements.take().isEmpty)
  }
}

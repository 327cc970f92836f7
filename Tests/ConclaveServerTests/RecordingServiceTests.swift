import Contract
import MediaModel
import Persistence
import Recording
import ReelStore
import StoreWriting
import Testing

@testable import Calls
@testable import ConclaveServer

/// Requests about recordings (protocol section 13.4).
@Suite(.timeLimit(.minutes(2))) struct RecordingServiceTests {
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
    #expect(house.announcements.take().map(\.grant.to.user) == [house.alice.user])
    _ = try await house.ask(.share(share), by: house.alice).get()
    #expect(
      house.announcements.take() == [
        RecordingShared(recording: recording.id, kind: .message, by: house.alice.address, grant: grant)
      ])

    let entry = try #require(try await listed(house.bob).first)
    #expect(entry.id == recording.id && entry.role == .reader && entry.by == house.alice.address)
    #expect(entry.bytes == 6_000 && entry.state == .finished && entry.grant == grant && entry.kind == .message)
    #expect(entry.call == recording.statement.call)
    #expect(entry.expiresAt.milliseconds - entry.startedAt.milliseconds == 30 * 86_400_000)
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
    let refused = RecordingsRequest.start(recording.start(grants: [recording.grant(to: house.bob)]))
    #expect(await house.error(of: refused, by: house.alice)?.code == .recordingNotAllowed)
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
    let segments = (0..<UInt32(RecordingService.page + 3)).map { number in
      StoredSegment(number: number, byteCount: 200, hash: SegmentHash([UInt8](repeating: 1, count: 32))!, start: 5)
    }
    try house.storage.write(segments.map { .recording(.segment(recording.id, reel: 1, $0)) })
    #expect(try await manifest(recording.id, for: house.alice).reels.first?.segments.count == RecordingService.page)
    let rest = GetRecording(id: recording.id, from: UInt32(RecordingService.page))
    guard case .recording(let last) = try await house.ask(.get(rest), by: house.alice).get() else {
      throw RecordingHouse.Unexpected()
    }
    #expect(last.reels.first?.segments.count == 3 && last.reels.first?.from == UInt32(RecordingService.page))
  }
}

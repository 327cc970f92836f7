import Contract
import Crypto
import MediaModel
import Octets
import Recording
import Testing

@testable import ConclaveClient

/// Lies that a server, or another reader, may tell about a stored recording, and the words of this client's reader. The numbers are those of the table in the design of
/// recordings; the web client runs through the same (`recordings-lies.test.mjs`).
struct RecordingLiesTests {
  private static let all = [0, 1, 2, 3]

  private func read(
    _ world: RecordingWorld, seen: [SeenReel] = [], _ lie: (inout RecordingWorld) throws -> Void = { _ in }
  ) async throws -> RecordingWorld.Outcome {
    var world = world
    try lie(&world)
    return try await world.read(seen: seen)
  }

  @Test func honestly() async throws {
    let outcome = try await read(RecordingWorld())
    #expect(outcome.state == .complete && outcome.plays == Self.all && outcome.notes.isEmpty && outcome.by == "alice")
    let unfinished = try await read(RecordingWorld(isEnded: false))
    #expect(unfinished.state == .unfinished && unfinished.plays == [0, 1, 2])
  }

  // MARK: keys

  /// 19: a grant of another key.
  @Test func aGrantOfAnotherKeyIsRefused() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      let other = RecordingKey(using: &world.generator)
      world.files.manifest.grants = [
        try #require(
          other.grant(to: world.bob.publicKeys, of: world.statement, at: RecordingWorld.now, by: world.alice))
      ]
    }
    #expect(outcome.refusal == .noKey)
  }

  /// 20 and 41: a whole recording "from Alice" that the server made.
  @Test func aRecordingInAnothersNameIsRefused() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      var statement = world.files.manifest.statement
      statement = SignedStatement(signing: statement, by: world.mallory).statement
      statement.by = world.alice.address
      world.files.manifest.statement = statement
    }
    #expect(outcome.refusal == .notSigned)
    // With Mallory's keys under Alice's name.
    let dressed = try await read(RecordingWorld()) { world in
      let fake = try #require(DeviceIdentity(user: "alice", device: "phone"))
      world.files.manifest.statement = SignedStatement(signing: world.files.manifest.statement, by: fake).statement
      world.files.manifest.people[0].keys = fake.registration
      world.files.manifest.people[0].fingerprint = Base64Bytes(fake.fingerprint)
    }
    #expect(dressed.refusal == .notSigned)
  }

  /// 21: a grant for another recording.
  @Test func aGrantOfAnotherRecordingIsRefused() async throws {
    let other = RecordingWorld(seed: 8)
    let outcome = try await read(RecordingWorld()) { world in
      world.files.manifest.grants = other.files.manifest.grants.map { grant in
        var grant = grant
        grant.recording = world.statement.id
        return grant
      }
    }
    #expect(outcome.refusal == .noKey)
  }

  /// 26: no grant for this device. 25 is `holders`' matter.
  @Test func withoutAGrantThereIsNoKey() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      world.files.manifest.grants.removeAll { $0.to.user == world.bob.address.user }
    }
    #expect(outcome.refusal == .noKey)
    #expect(try await RecordingWorld().read(as: RecordingWorld().mallory).refusal == .noKey)
  }

  /// A further grant that the server has added does not hide the one that counts.
  @Test func anAddedGrantDoesNoHarm() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      var forged = try #require(world.files.manifest.grants.last)
      forged.signature.bytes[3] ^= 1
      world.files.manifest.grants.insert(forged, at: 0)
    }
    #expect(outcome.state == .complete)
  }

  /// 27: another reel key, or one of another reel.
  @Test func anotherReelKeyIsRefused() async throws {
    let forged = try await read(RecordingWorld()) { world in
      let chain = try #require(ReelChain([UInt8](repeating: 1, count: 32), of: world.statement.id, reel: 1))
      let key = try #require(chain.sealed(for: world.statement, by: world.mallory))
      world.files.manifest.reelKeys = [RecordingManifest.Key(reel: 1, key)]
    }
    #expect(forged.state == .closed && forged.plays.isEmpty)
    let moved = try await read(RecordingWorld()) { world in world.files.manifest.reelKeys[0].reel = 2 }
    #expect(moved.state == .closed)
  }

  // MARK: stored bytes

  /// 28: a segment is missing in the middle.
  @Test func aMissingSegmentIsAGap() async throws {
    let outcome = try await read(RecordingWorld()) { $0.files.files[1]?[1] = nil }
    #expect(outcome.state == .changed && outcome.plays == [0, 2, 3] && outcome.missing == [1])
    // It is not listed either: the next one does not follow.
    let hidden = try await read(RecordingWorld()) { world in
      world.files.files[1]?[1] = nil
      world.relist()
      for (place, number) in [0, 2, 3].enumerated() {
        world.files.files[1]?[place] = world.segments[number].file
      }
    }
    #expect(hidden.state == .changed && hidden.plays == [0])
  }

  /// 29: the end is cut off.
  @Test func aCutOffEndIsSaid() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      world.files.files[1]?[3] = nil
      world.relist()
    }
    #expect(outcome.state == .cutOff && outcome.plays == [0, 1, 2] && outcome.known == 4)
    let unwitnessed = try await read(RecordingWorld()) { world in
      world.files.files[1]?[3] = nil
      world.relist()
      world.files.manifest.witnesses = []
    }
    #expect(unwitnessed.state == .unfinished)
  }

  /// 30: two segments, or two recordings, are swapped.
  @Test func swappedSegmentsAreRefused() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      world.files.files[1]?[1] = world.segments[2].file
      world.files.files[1]?[2] = world.segments[1].file
      world.relist()
    }
    #expect(outcome.state == .changed && outcome.plays == [0])
    #expect(outcome.refused[1] == .notListed && outcome.refused[2] == .notListed)
    let other = RecordingWorld(seed: 8)
    let foreign = try await read(RecordingWorld()) { world in
      world.files.files = other.files.files
      world.relist()
      world.files.manifest.witnesses = []
    }
    #expect(foreign.state == .changed && foreign.plays.isEmpty)
    // A whole recording under another id.
    var renamed = RecordingWorld()
    renamed.files.manifest = other.files.manifest
    #expect(try await renamed.read().refusal == .anotherRecording)
  }

  /// 31: one bit of a segment is changed, in each part of it.
  @Test(arguments: [0, 5, 24, 31, 39, 40, 72, 96, 200, -1]) func aChangedBitIsSeen(place: Int) async throws {
    let outcome = try await read(RecordingWorld()) { world in
      let count = world.files.files[1]![1]!.count
      world.files.files[1]?[1]?[place < 0 ? count - 1 : place] ^= 1
    }
    #expect(outcome.state == .changed && outcome.plays == [0, 2, 3] && outcome.refused[1] != nil)
    // The list has the hash of the changed file.
    let listed = try await read(RecordingWorld()) { world in
      let count = world.files.files[1]![1]!.count
      world.files.files[1]?[1]?[place < 0 ? count - 1 : place] ^= 1
      var entries = world.files.manifest.reels[0].segments
      entries[1].hash = Base64Bytes(SegmentHash(of: world.files.files[1]![1]!).bytes)
      world.files.manifest.reels[0].segments = entries
      world.files.manifest.witnesses = []
    }
    #expect(listed.state == .changed && !listed.plays.contains(1) && listed.plays.contains(0))
  }

  /// 36: an older state is shown after it was played.
  @Test func anOlderStateIsNoticed() async throws {
    let world = RecordingWorld()
    let seen = try await world.read().seen
    #expect(seen.first?.segments == 4)
    let older = try await read(world, seen: seen) { world in
      world.files.files[1]?[3] = nil
      world.relist()
      world.files.manifest.witnesses = []
    }
    #expect(older.state == .cutOff && older.known == 4)
  }

  /// 40: records without end, lengths beyond the end: what is behind the last good record is damaged. Only a device that made it can seal such a thing.
  @Test func damagedRecordsPlayUpToTheFirst() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      var chain = try #require(ReelChain(world.firstChain, of: world.statement.id, reel: 1))
      let file = world.segments[0].file
      let header = try SegmentHeader(parsing: file.span.bytes)
      let records = try #require(SegmentSealing.open(file, under: chain, header))
      let damaged = Array(records.dropLast(17)) + [2, 255, 255, 255, 0]
      world.files.files[1]?[0] = try #require(SegmentSealing.seal(damaged, under: chain, header))
      chain.advance()
      world.relist()
      world.files.manifest.witnesses = []
    }
    #expect(outcome.plays.contains(0) && outcome.state == .changed, "the next segment does not follow it")
  }

  /// 42: an id that is known has one statement. 45: a note is left out.
  @Test func aNoteThatIsLeftOutIsMissing() async throws {
    let outcome = try await read(RecordingWorld()) { world in world.files.manifest.notes.remove(at: 1) }
    #expect(outcome.notes == [1])
    let forged = try await read(RecordingWorld()) { world in world.files.manifest.notes[2].ciphertext.bytes[80] ^= 1 }
    #expect(forged.notes == [2])
  }

  /// A page that does not continue the one before, and endless lists.
  @Test func pagesFollowEachOther() async throws {
    let outcome = try await read(RecordingWorld()) { world in world.files.manifest.reels[0].from = 1 }
    #expect(outcome.refusal == .malformed)
    let twice = try await read(RecordingWorld()) { world in
      world.files.manifest.reels.append(world.files.manifest.reels[0])
    }
    #expect(twice.refusal == .malformed)
  }

  /// A long reel comes in pages; the last one is not full.
  @Test func pagesAreAskedForToTheEnd() throws {
    let world = RecordingWorld()
    func page(_ from: Int, _ count: Int) -> RecordingManifest {
      var page = world.files.manifest
      let segments = page.reels[0].segments.dropFirst(from).prefix(count)
      page.reels = [ReelPage(participant: 1, from: UInt32(from), segments: Array(segments))]
      return page
    }
    let signers = KnownSigners(identity: world.bob, pins: Pins(world.pins))
    var opened = try OpenedRecording(page(0, 2), id: world.statement.id, signers: signers, now: RecordingWorld.now)
    #expect(opened.nextPage(after: page(0, 2), size: 2) == 2)
    try opened.add(page(2, 2))
    #expect(opened.nextPage(after: page(2, 2), size: 2) == 4)
    try opened.add(page(4, 2))
    #expect(opened.nextPage(after: page(4, 2), size: 2) == nil)
    #expect(opened.reels.map(\.info.state) == [.complete] && opened.reels[0].info.segments == 4)
    #expect(throws: UnreadableRecording.malformed) { try opened.add(page(1, 2)) }
  }

  // MARK: calls

  private func readCall(
    _ lie: (inout StoredFiles) throws -> Void
  ) async throws -> (reels: [ReelInfo], gaps: [UInt32: Set<RecordingGap.Reason>], frames: Int) {
    let vectors = RecordingVectors.all
    var files = StoredFiles(CallVector.all)
    try lie(&files)
    let reader = try await RecordingReader(
      files.manifest.statement.id.text, from: files, as: vectors.bob, now: vectors.now.milliseconds)
    var gaps: [UInt32: Set<RecordingGap.Reason>] = [:]
    var frames = 0
    for reel in await reader.reels {
      for number in 0..<reel.segments {
        guard let segment = try await reader.segment(number, ofReel: reel.number) else { continue }
        frames += segment.frames.count
        gaps[reel.number, default: []].formUnion(segment.gaps.map(\.reason))
      }
    }
    return (await reader.reels, gaps, frames)
  }

  /// The file of a segment with other records, and the list that names it.
  private func rewrite(
    _ files: inout StoredFiles, reel: UInt32, _ number: Int, _ change: ([[UInt8]]) -> [[UInt8]]
  ) throws {
    let file = try #require(files.files[reel]?[number])
    var records: [[UInt8]] = []
    var place = SegmentHeader.byteCount
    while place + 4 <= file.count {
      let length = Int(file[place + 1]) << 16 | Int(file[place + 2]) << 8 | Int(file[place + 3])
      records.append(Array(file[place..<place + 4 + length]))
      place += 4 + length
    }
    var changed = change(Array(records.dropLast()))
    let count = UInt32(changed.count)
    var end = records[records.count - 1]
    end.replaceSubrange(5..<9, with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) })
    changed.append(end)
    let new = Array(file.prefix(SegmentHeader.byteCount)) + changed.joined()
    files.files[reel]?[number] = new
    let index = try #require(files.manifest.reels.firstIndex { $0.participant == reel })
    files.manifest.reels[index].segments[number].byteCount = new.count
    files.manifest.reels[index].segments[number].hash = Base64Bytes(SegmentHash(of: new).bytes)
  }

  /// 13: track keys in another's name, or for another's track. 14: bytes that are no key.
  @Test func trackKeysOfAnotherAreRefused() async throws {
    let swapped = try await readCall { files in
      var keys = try #require(files.manifest.trackKeys)
      keys[2].participant = 1
      keys[0].participant = 2
      files.manifest.trackKeys = keys
    }
    #expect(swapped.gaps[2] == nil && swapped.reels.first { $0.number == 2 }?.state == .closed)
    #expect(swapped.gaps[1]?.contains(.noKey) == true)
    let forged = try await readCall { files in
      files.manifest.trackKeys?[2].ciphertext.bytes[70] ^= 1
    }
    #expect(forged.reels.map(\.state) == [.unfinished, .closed], "the others play")
  }

  /// An epoch's keys are withheld: those frames stay closed, and the rest plays.
  @Test func framesWithoutAKeyAreAGap() async throws {
    let outcome = try await readCall { files in files.manifest.trackKeys?.removeAll { $0.epoch == 263 } }
    #expect(outcome.gaps[1] == [.noKey] && outcome.reels.map(\.state) == [.unfinished, .unfinished])
  }

  /// 15 and 33: a frame of another person, or of another track.
  @Test func aFrameOfAnotherIsDropped() async throws {
    let bob = try await readCall { _ in }
    let outcome = try await readCall { files in
      let foreign = try #require(files.files[2]?[0])
      // Bob's first frame, behind header, stream and clock.
      let start = SegmentHeader.byteCount + 17 + 18
      let length = Int(foreign[start + 2]) << 8 | Int(foreign[start + 3])
      let frame = Array(foreign[start..<start + 4 + length])
      try rewrite(&files, reel: 1, 1) { records in records + [frame] }
    }
    #expect(outcome.frames == bob.frames && outcome.gaps[1] == [.foreignFrame])
    #expect(outcome.reels[0].state == .changed && outcome.reels[1].state == .unfinished)
  }

  /// 32: a frame occurs twice, in its segment, or in a later one.
  @Test func aRepeatedFrameIsDropped() async throws {
    let honest = try await readCall { _ in }
    let outcome = try await readCall { files in
      try rewrite(&files, reel: 2, 0) { records in records + [records[records.count - 1]] }
    }
    #expect(outcome.frames == honest.frames && outcome.gaps[2] == [.foreignFrame] && outcome.reels[1].state == .changed)
    let reordered = try await readCall { files in
      try rewrite(&files, reel: 2, 0) { records in
        var records = records
        records.swapAt(records.count - 1, records.count - 2)
        return records
      }
    }
    #expect(reordered.frames == honest.frames - 1 && reordered.reels[1].state == .changed)
  }

  /// 39: the server's clock goes back.
  @Test func aSegmentFromBeforeTheOneBeforeIsSeen() async throws {
    let outcome = try await readCall { files in
      var file = try #require(files.files[1]?[1])
      file.replaceSubrange(32..<40, with: (UInt64(RecordingVectors.all.now.milliseconds) * 1_000 - 1).bigEndianBytes)
      files.files[1]?[1] = file
      files.manifest.reels[0].segments[1].start = RecordingVectors.all.now.milliseconds * 1_000 - 1
      files.manifest.reels[0].segments[1].hash = Base64Bytes(SegmentHash(of: file).bytes)
    }
    #expect(outcome.reels[0].state == .changed)
  }

  /// A call's segment is not sealed as a whole, and a device's is.
  @Test func theKindOfSealBelongsToTheKindOfRecording() async throws {
    let outcome = try await read(RecordingWorld()) { world in
      var file = world.segments[3].file
      file[5] = 0
      file.replaceSubrange(72..<84, with: [UInt8](repeating: 0, count: 12))
      world.files.files[1]?[3] = file
      world.relist()
      world.files.manifest.witnesses = []
    }
    #expect(outcome.refused[3] == .notSealed)
  }
}

extension UInt64 {
  fileprivate var bigEndianBytes: [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: self >> UInt64($0)) }
  }
}

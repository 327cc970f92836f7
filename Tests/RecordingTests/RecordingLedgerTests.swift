import Contract
import MediaModel
import Recording
import Seeded
import Testing

private let now = Timestamp(milliseconds: 1_800_000_000_000)
private let alice = Device(user: UserID("alice")!, device: DeviceID("phone")!)
private let bob = Device(user: UserID("bob")!, device: DeviceID("laptop")!)

private func id(_ number: UInt8) -> RecordingID { RecordingID([UInt8](repeating: number, count: 16))! }

private func recording(
  _ number: UInt8, of owner: Device = alice, kind: RecordingKind = .own, isDraft: Bool = false, reels: [UInt32] = [1]
) -> StoredRecording {
  StoredRecording(
    id: id(number), kind: kind, owner: owner, startedAt: now, expiresAt: now + .seconds(86_400), isDraft: isDraft,
    reels: reels.map { StoredReel(number: $0, user: owner.user) })
}

private func hash(_ number: UInt8) -> SegmentHash { SegmentHash([UInt8](repeating: number, count: 32))! }

/// A header that continues the reel, unless it is changed.
private func header(
  _ recording: UInt8, _ position: ReelPosition, reel: UInt32 = 1, start: Int64 = 0
) throws -> SegmentHeader {
  let segment = Vectors.all.sealed[0].file.bytes
  var header = try SegmentHeader(parsing: segment.span.bytes)
  (header.recording, header.reel) = (id(recording), reel)
  (header.number, header.previous, header.start) = (position.next, position.head, start)
  return header
}

extension RecordingLedger {
  fileprivate func position(_ number: UInt8, reel: UInt32 = 1) -> ReelPosition {
    self[id(number)]?.reels.first { $0.number == reel }?.position ?? ReelPosition()
  }

  /// Stores the next segment of a reel.
  fileprivate mutating func store(_ number: UInt8, reel: UInt32 = 1, bytes: Int = 1_000, start: Int64 = 0) throws {
    let upload = try admit(id(number), reel: reel, byteCount: bytes)
    defer { release(upload) }
    let position = position(number, reel: reel)
    let place = try place(header(number, position, reel: reel, start: start), of: upload)
    let segment = StoredSegment(
      number: position.next, byteCount: bytes, hash: hash(UInt8(truncatingIfNeeded: position.next + 1)), start: start)
    let isKept = commit(segment, of: upload)
    #expect(place == .next && isKept)
  }

  /// Whether the upload has the place to continue its reel.
  fileprivate mutating func continues(_ header: SegmentHeader, of upload: Upload) throws -> Bool {
    try place(header, of: upload) == .next
  }
}

struct RecordingLedgerTests {
  @Test func aReelGrowsSegmentBySegment() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1))
    for _ in 0..<3 { try ledger.store(1, start: 7) }
    let position = ledger.position(1)
    #expect(position.next == 3 && position.head == hash(3) && position.byteCount == 3_000 && position.start == 7)
    #expect(ledger.bytes == 3_000 && ledger.bytes(of: alice.user) == 3_000 && ledger.reserved == 0)
  }

  @Test func onlyTheNextSegmentContinuesAReel() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1))
    try ledger.store(1)
    let position = ledger.position(1)
    let upload = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    var wrong = try header(1, position)
    wrong.number = 2
    #expect(throws: RecordingRefusal.conflict(position)) { try ledger.place(wrong, of: upload) }
    wrong = try header(1, position)
    wrong.previous = hash(9)
    #expect(throws: RecordingRefusal.conflict(position)) { try ledger.place(wrong, of: upload) }
    wrong.number = 0
    let earlier = try ledger.place(wrong, of: upload)
    #expect(earlier == .earlier(position))
    let isNext = try ledger.continues(header(1, position), of: upload)
    #expect(isNext)
  }

  /// The header decides, not the path that the client chose.
  @Test func aSegmentOfAnotherReelOrRecordingIsRefused() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, reels: [1, 2]))
    ledger.begin(recording(2))
    let upload = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    for change in [{ $0.recording = id(2) }, { $0.reel = 2 }, { $0.isSealed = false }]
      as [(inout SegmentHeader) -> Void]
    {
      var wrong = try header(1, ReelPosition())
      change(&wrong)
      #expect(throws: RecordingRefusal.invalid) { try ledger.place(wrong, of: upload) }
    }
    #expect(throws: RecordingRefusal.notFound) { try ledger.admit(id(3), reel: 1, byteCount: 1_000) }
    #expect(throws: RecordingRefusal.notFound) { try ledger.admit(id(1), reel: 3, byteCount: 1_000) }
    #expect(throws: RecordingRefusal.invalid) { try ledger.admit(id(1), reel: 1, byteCount: 111) }
    #expect(throws: RecordingRefusal.tooLarge) { try ledger.admit(id(1), reel: 1, byteCount: (8 << 20) + 1) }
  }

  @Test func twoUploadsNeverContinueOneReel() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, reels: [1, 2]))
    let first = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    let second = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    let beside = try ledger.admit(id(1), reel: 2, byteCount: 1_000)
    var isNext = try ledger.continues(header(1, ReelPosition()), of: first)
    #expect(isNext)
    #expect(throws: RecordingRefusal.busy) { try ledger.place(header(1, ReelPosition()), of: second) }
    isNext = try ledger.continues(header(1, ReelPosition(), reel: 2), of: beside)
    #expect(isNext)
    let segment = StoredSegment(number: 0, byteCount: 1_000, hash: hash(1), start: 0)
    var isKept = ledger.commit(segment, of: second)
    #expect(!isKept, "it has no place")
    ledger.release(first)
    isNext = try ledger.continues(header(1, ReelPosition()), of: second)
    isKept = ledger.commit(segment, of: second)
    #expect(isNext && isKept)
  }

  @Test func uploadsOfAUserAndOfAllAreBounded() throws {
    var limits = RecordingLedger.Limits()
    (limits.uploadsOfUser, limits.uploadBytes) = (2, 5_000)
    var ledger = RecordingLedger(limits: limits)
    ledger.begin(recording(1))
    ledger.begin(recording(2, of: bob))
    let first = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    _ = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    #expect(throws: RecordingRefusal.busy) { try ledger.admit(id(1), reel: 1, byteCount: 1_000) }
    #expect(throws: RecordingRefusal.busy) { try ledger.admit(id(2), reel: 1, byteCount: 3_001) }
    _ = try ledger.admit(id(2), reel: 1, byteCount: 3_000)
    // Released twice, it is one.
    ledger.release(first)
    ledger.release(first)
    #expect(ledger.reserved == 4_000)
    _ = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    #expect(throws: RecordingRefusal.busy) { try ledger.admit(id(1), reel: 1, byteCount: 1_000) }
  }

  @Test func theRoomOfAUserAndOfAllIsBounded() throws {
    var limits = RecordingLedger.Limits()
    (limits.userBytes, limits.totalBytes) = (2_500, 4_000)
    var ledger = RecordingLedger(limits: limits)
    ledger.begin(recording(1))
    ledger.begin(recording(2, of: bob))
    try ledger.store(1)
    try ledger.store(1)
    #expect(throws: RecordingRefusal.quota) { try ledger.store(1) }
    try ledger.store(1, bytes: 500)
    #expect(throws: RecordingRefusal.quota) { try ledger.checkRoom(for: alice.user) }
    #expect(throws: Never.self) { try ledger.checkRoom(for: bob.user) }
    try ledger.store(2)
    #expect(throws: RecordingRefusal.quota) { try ledger.admit(id(2), reel: 1, byteCount: 501) }
    // An upload takes its room while it is under way.
    let upload = try ledger.admit(id(2), reel: 1, byteCount: 500)
    #expect(throws: RecordingRefusal.quota) { try ledger.admit(id(2), reel: 1, byteCount: 112) }
    ledger.release(upload)
    ledger.remove(recording(1))
    #expect(ledger.bytes == 1_000 && ledger.bytes(of: alice.user) == 0)
    #expect(throws: Never.self) { try ledger.checkRoom(for: alice.user) }
  }

  @Test func aMessageHasALength() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, kind: .message))
    ledger.begin(recording(2))
    for number: UInt8 in [1, 2] {
      try ledger.store(number, start: 5_000_000)
      try ledger.store(number, start: 184_999_999)
    }
    let upload = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    let late = try header(1, ledger.position(1), start: 185_000_000)
    #expect(throws: RecordingRefusal.tooLong) { try ledger.place(late, of: upload) }
    try ledger.store(2, start: 185_000_000)
  }

  @Test func aRecordingFinishesOnlyWhole() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, reels: [1, 2]))
    try ledger.store(1)
    let (first, second) = (ReelHead(segments: 1, hash: hash(1)), ReelHead(segments: 0, hash: .zeros))
    #expect(throws: RecordingRefusal.invalid) { try ledger.checkEnd(of: id(1), heads: [1: first]) }
    #expect(throws: RecordingRefusal.notFound) { try ledger.checkEnd(of: id(1), heads: [1: first, 3: second]) }
    #expect(throws: RecordingRefusal.conflict(ledger.position(1))) {
      try ledger.checkEnd(of: id(1), heads: [1: ReelHead(segments: 2, hash: hash(2)), 2: second])
    }
    #expect(throws: RecordingRefusal.conflict(ledger.position(1))) {
      try ledger.checkEnd(of: id(1), heads: [1: ReelHead(segments: 1, hash: hash(2)), 2: second])
    }
    let upload = try ledger.admit(id(1), reel: 2, byteCount: 1_000)
    _ = try ledger.place(header(1, ReelPosition(), reel: 2), of: upload)
    #expect(throws: RecordingRefusal.busy) { try ledger.checkEnd(of: id(1), heads: [1: first, 2: second]) }
    ledger.release(upload)
    #expect(throws: Never.self) { try ledger.checkEnd(of: id(1), heads: [1: first, 2: second]) }
    let ended = ledger.end(id(1))
    let again = ledger.end(id(1))
    #expect(ended?.byteCount == 1_000 && again == nil)
    #expect(throws: RecordingRefusal.notFound) { try ledger.admit(id(1), reel: 1, byteCount: 1_000) }
    // Its bytes stay its owner's until it is deleted.
    #expect(ledger.bytes(of: alice.user) == 1_000)
  }

  @Test func anUploadIntoADeletedRecordingDoesNotCount() throws {
    for isReelAlone in [false, true] {
      var ledger = RecordingLedger()
      ledger.begin(recording(1, reels: [1, 2]))
      try ledger.store(1)
      let upload = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
      _ = try ledger.place(header(1, ledger.position(1)), of: upload)
      // The disk knew of no segment yet.
      if isReelAlone { ledger.remove(reel: 1, of: recording(1)) } else { ledger.remove(recording(1)) }
      let isKept = ledger.commit(StoredSegment(number: 1, byteCount: 1_000, hash: hash(2), start: 0), of: upload)
      ledger.release(upload)
      #expect(!isKept && ledger.bytes == 0 && ledger.reserved == 0)
    }
  }

  @Test func aForgottenUserHasNothing() throws {
    var ledger = RecordingLedger(
      restoring: StoredRecordings(
        usage: [
          alice.user: StoredUsage(bytes: 5_000, recordings: 3, drafts: 2),
          bob.user: StoredUsage(bytes: 7, recordings: 1),
        ]))
    ledger.begin(recording(1))
    var shared = recording(2, of: bob, reels: [1, 2])
    shared.reels[1].user = alice.user
    ledger.begin(shared)
    try ledger.store(1)
    try ledger.store(2)
    try ledger.store(2, reel: 2)
    ledger.forget(alice.user)
    #expect(ledger[id(1)] == nil && ledger[id(2)]?.reels.map(\.number) == [1])
    #expect(ledger.bytes(of: alice.user) == 0 && ledger.bytes(of: bob.user) == 1_007 && ledger.bytes == 1_007)
    #expect(ledger.recordingCount == 2 && ledger.draftCount == 0)
    // The deletion of one of them was under way.
    ledger.remove(recording(1, isDraft: true))
    #expect(ledger.recordingCount == 2 && ledger.draftCount == 0 && ledger.bytes == 1_007)
  }

  @Test func draftsAndRecordingsOfAUserAreBounded() throws {
    var limits = RecordingLedger.Limits()
    (limits.recordingsOfUser, limits.draftsOfUser) = (4, 2)
    let earlier = StoredRecordings(usage: [alice.user: StoredUsage(recordings: 1, drafts: 1)])
    var ledger = RecordingLedger(limits: limits, restoring: earlier)
    ledger.begin(recording(1, isDraft: true))
    #expect(throws: RecordingRefusal.drafts) { try ledger.checkRoom(for: alice.user, isDraft: true) }
    #expect(throws: Never.self) { try ledger.checkRoom(for: alice.user) }
    #expect(throws: Never.self) { try ledger.checkRoom(for: bob.user, isDraft: true) }
    ledger.keep(recording(1, isDraft: true), until: now + .seconds(5))
    #expect(ledger[id(1)]?.isDraft == false && ledger[id(1)]?.expiresAt == now + .seconds(5))
    // The disk may say so once more.
    ledger.keep(recording(1), until: now)
    #expect(ledger.draftCount == 1 && ledger.recordingCount == 2)
    for number: UInt8 in [2, 3] { ledger.begin(recording(number)) }
    #expect(throws: RecordingRefusal.quota) { try ledger.checkRoom(for: alice.user) }
    ledger.remove(recording(3))
    #expect(throws: Never.self) { try ledger.checkRoom(for: alice.user) }
  }

  @Test func theUploadsOfAUserLeaveRoomForOthers() throws {
    var limits = RecordingLedger.Limits()
    limits.uploadBytesOfUser = 2_000
    var ledger = RecordingLedger(limits: limits)
    ledger.begin(recording(1))
    ledger.begin(recording(2, of: bob))
    let first = try ledger.admit(id(1), reel: 1, byteCount: 1_500)
    #expect(throws: RecordingRefusal.busy) { try ledger.admit(id(1), reel: 1, byteCount: 501) }
    _ = try ledger.admit(id(2), reel: 1, byteCount: 1_500)
    ledger.release(first)
    _ = try ledger.admit(id(1), reel: 1, byteCount: 2_000)
  }

  @Test func aRecordingHasALength() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, reels: [1, 2]))
    #expect(ledger[id(1)]?.seconds == 0)
    for start: Int64 in [5_000_000, 9_000_000, 13_999_999] { try ledger.store(1, start: start) }
    #expect(ledger[id(1)]?.seconds == 8)
    // A clock that goes back.
    try ledger.store(1, start: 0)
    #expect(ledger[id(1)]?.seconds == 0)
  }

  @Test func aRecordingTakesUploadsForSomeHours() {
    var ledger = RecordingLedger()
    ledger.begin(recording(1))
    #expect(ledger.overdue(now: now + .seconds(12 * 3_600 - 1)).isEmpty)
    #expect(ledger.overdue(now: now + .seconds(12 * 3_600)) == [id(1)])
  }

  @Test func aRecordingOfACallEndsWithTheCall() {
    var ledger = RecordingLedger()
    ledger.begin(recording(1, kind: .call, reels: []))
    #expect(ledger.overdue(now: now + .seconds(1_000 * 3_600)).isEmpty)
  }

  @Test func theServerItselfContinuesTheReelsOfACall() {
    var ledger = RecordingLedger()
    let reel = StoredReel(number: 3, user: bob.user)
    let (first, second) = (0, 1) as (UInt32, UInt32)
    func segment(_ number: UInt32) -> StoredSegment {
      StoredSegment(number: number, byteCount: 500, hash: hash(UInt8(number + 1)), start: 1)
    }
    let earlyReel = ledger.add(reel, to: id(1))
    #expect(!earlyReel && ledger.position(of: id(1), reel: 3) == nil)
    ledger.begin(recording(1, kind: .call, reels: []))
    let withoutReel = ledger.append(segment(first), to: id(1), reel: 3)
    #expect(!withoutReel, "there is no such reel")
    let added = [ledger.add(reel, to: id(1)), ledger.add(reel, to: id(1))]
    let appended = [first, first, second].map { ledger.append(segment($0), to: id(1), reel: 3) }
    #expect(added == [true, true] && appended == [true, false, true], "the second one is stored already")
    #expect(ledger.position(of: id(1), reel: 3)?.next == 2 && ledger.position(of: id(1), reel: 3)?.head == hash(2))
    #expect(ledger[id(1)]?.reels.count == 1)
    #expect(throws: RecordingRefusal.notFound) { try ledger.admit(id(1), reel: 3, byteCount: 500) }
    // The starter's room is used, not that of the person who is recorded.
    #expect(ledger.bytes(of: alice.user) == 1_000 && ledger.bytes(of: bob.user) == 0 && ledger.bytes == 1_000)
  }

  @Test func aCallsRecordingHasTheRoomOfItsStarter() {
    var ledger = RecordingLedger()
    ledger.limits.userBytes = 600
    ledger.begin(recording(1, kind: .call, reels: [3]))
    #expect(ledger.hasRoom(for: id(1)) && !ledger.hasRoom(for: id(2)))
    let segment = StoredSegment(number: 0, byteCount: 700, hash: hash(1), start: 1)
    let isStored = ledger.append(segment, to: id(1), reel: 3)
    #expect(isStored && !ledger.hasRoom(for: id(1)))
  }

  @Test func aSegmentThatIsBeingWrittenCountsBeforeTheEnd() throws {
    var ledger = RecordingLedger()
    ledger.begin(recording(1))
    let upload = try ledger.admit(id(1), reel: 1, byteCount: 1_000)
    _ = try ledger.place(header(1, ReelPosition()), of: upload)
    #expect(ledger.overdue(now: now + .seconds(86_400)).isEmpty)
    ledger.release(upload)
    #expect(ledger.overdue(now: now + .seconds(86_400)) == [id(1)])
  }

  @Test func aStartKnowsWhatRan() {
    var stored = recording(1)
    stored.reels[0].position.append(StoredSegment(number: 0, byteCount: 400, hash: hash(4), start: 1))
    let usage = [alice.user: StoredUsage(bytes: 900, recordings: 2, drafts: 1)]
    let ledger = RecordingLedger(restoring: StoredRecordings(running: [stored], usage: usage))
    #expect(ledger.position(1).next == 1 && ledger.position(1).head == hash(4))
    #expect(ledger.bytes == 900 && ledger.runningCount == 1)
    #expect(ledger.recordingCount == 2 && ledger.draftCount == 1)
  }

  /// In any order of steps the sums are those of what is there, and nothing is negative.
  @Test(arguments: 1...50 as ClosedRange<UInt64>) func theSumsHold(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var limits = RecordingLedger.Limits()
    (limits.userBytes, limits.totalBytes, limits.uploadBytes) = (20_000, 30_000, 8_000)
    var ledger = RecordingLedger(limits: limits)
    var kept: [RecordingID: StoredRecording] = [:]
    var uploads: [RecordingLedger.Upload] = []
    var placed: [RecordingLedger.Upload: UInt32] = [:]
    var stored = 0
    for _ in 0..<400 {
      let number = UInt8(random.below(4) + 1)
      switch random.below(10) {
      case 0:
        guard kept[id(number)] == nil else { continue }
        kept[id(number)] = recording(number, of: number < 3 ? alice : bob)
        ledger.begin(recording(number, of: number < 3 ? alice : bob))
      case 1:
        guard let recording = kept.removeValue(forKey: id(number)) else { continue }
        ledger.remove(recording)
      case 2:
        if let ended = ledger.end(id(number)) { kept[id(number)] = ended }
      case 3 where random.below(5) == 0:
        ledger.forget(alice.user)
        kept = kept.filter { $0.value.owner != alice }
      case 4:
        guard let upload = uploads.randomElement(using: &random) else { continue }
        ledger.release(upload)
        uploads.removeAll { $0 == upload }
        placed[upload] = nil
      case 5, 6:
        guard let upload = try? ledger.admit(id(number), reel: 1, byteCount: 112 + random.below(4_000)) else {
          continue
        }
        uploads.append(upload)
      default:
        guard let upload = uploads.randomElement(using: &random), let running = ledger[upload.recording] else {
          continue
        }
        let position = running.reels[0].position
        if placed[upload] == position.next {
          let segment = StoredSegment(
            number: position.next, byteCount: upload.byteCount, hash: hash(UInt8(random.below(200) + 1)), start: 0)
          if ledger.commit(segment, of: upload) { stored += 1 }
          ledger.release(upload)
          uploads.removeAll { $0 == upload }
          placed[upload] = nil
        } else if let header = try? header(upload.recording.bytes[0], position),
          (try? ledger.place(header, of: upload)) == .next
        {
          placed[upload] = position.next
        }
      }
      for recording in ledger.recordings { kept[recording.id] = recording }
      let sum = kept.values.reduce(0) { $0 + $1.byteCount }
      #expect(ledger.bytes == sum && ledger.bytes <= limits.totalBytes, "seed \(seed)")
      for owner in [alice, bob] {
        let bytes = kept.values.filter { $0.owner == owner }.reduce(0) { $0 + $1.byteCount }
        #expect(ledger.bytes(of: owner.user) == bytes && bytes <= limits.userBytes, "seed \(seed)")
      }
      #expect(ledger.reserved == uploads.reduce(0) { $0 + Int64($1.byteCount) }, "seed \(seed)")
    }
    #expect(stored > 0, "seed \(seed)")
  }
}

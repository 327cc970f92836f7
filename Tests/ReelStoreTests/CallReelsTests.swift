import CallMessages
import Contract
import Cryptography
import Foundation
import LinuxIO
import MediaModel
import Persistence
import Recording
import Reels
import Synchronization
import Testing

@testable import ReelStore

/// The reels of calls on the disk.
struct CallReelsTests {
  private static let id = RecordingID([UInt8](repeating: 5, count: 16))!
  private static let bob = UserID(unchecked: "bob")
  private static let start: Int64 = 1_800_000_000_000_000

  /// The calls of the listener.
  private final class Told: Sendable {
    private let state = Mutex((written: 0, failed: [RecordingRefusal](), finished: [RecordingID]()))

    var written: Int { state.withLock { $0.written } }
    var failed: [RecordingRefusal] { state.withLock { $0.failed } }
    var finished: [RecordingID] { state.withLock { $0.finished } }

    var listener: CallReels.Listener {
      CallReels.Listener(
        written: { _, count in self.state.withLock { $0.written += count } },
        failed: { _, refusal in self.state.withLock { $0.failed.append(refusal) } },
        finished: { id in self.state.withLock { $0.finished.append(id) } })
    }
  }

  private final class Disk {
    let folder = NSTemporaryDirectory() + "call-reels-\(UInt64.random(in: .min ... .max))"
    let storage: SQLiteStore
    let told = Told()
    let store: RecordingStore
    let reels: CallReels

    init(_ folder: String? = nil, change: (inout RecordingStore.Configuration) -> Void = { _ in }) async throws {
      if folder == nil {
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
      }
      storage = try SQLiteStore(path: (folder ?? self.folder) + "/conclave.sqlite")
      let token = try storage.load(now: Timestamp(milliseconds: 1)).token
      var configuration = RecordingStore.Configuration(folder: (folder ?? self.folder) + "/recordings")
      configuration.reserve = 0
      change(&configuration)
      store = RecordingStore(configuration, storage: storage, token: token)
      try await store.recover()
      reels = CallReels(store, told.listener)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    func begin() async throws {
      let recording = StoredRecording(
        id: CallReelsTests.id, kind: .call,
        owner: Device(user: UserID(unchecked: "alice"), device: DeviceID(unchecked: "phone")),
        startedAt: Timestamp(milliseconds: 5), expiresAt: Timestamp(milliseconds: 1 << 50), reels: [])
      try await store.begin(recording)
    }
  }

  private func name(_ reel: UInt32 = 2) -> ReelName {
    ReelName(recording: Self.id, reel: reel, peer: PeerID(rawValue: UInt64(reel)))
  }

  private func person(_ reel: UInt32 = 2) -> RecordedPerson {
    RecordedPerson(
      participant: reel, user: Self.bob, device: DeviceID(unchecked: "laptop"), name: "Bob",
      fingerprint: Base64Bytes([UInt8](repeating: 1, count: 32)), keys: [], joinId: Base64Bytes([1]))
  }

  private func keys(_ epoch: UInt32, _ tracks: [UInt8] = [1]) -> TrackKeys {
    TrackKeys(
      ExportTrackKeys(
        recording: Self.id, epoch: epoch, tracks: tracks, ciphertext: Base64Bytes([9]), sigAlg: "ES256",
        signature: Base64Bytes([8])), of: 2, listHash: Base64Bytes([7]))
  }

  /// The records of a segment with one frame.
  private func records(_ frame: [UInt8], ends: Bool = true) -> [UInt8] {
    var writer = SegmentWriter()
    writer.append(RecordedStream(index: 0, n: 1, source: 1, codec: 1, layer: 0, clockRate: 48_000, epoch: 7))
    writer.appendFrame(0, flags: 1, timestamp: 0, arrival: 0, frame)
    if ends { writer.append(SegmentEnd(reason: .continued, time: Self.start)) }
    return writer.take()
  }

  private func segment(_ frame: [UInt8], _ reel: UInt32 = 2) -> [ReelOutput] {
    [.begin(name(reel), start: Self.start), .write(name(reel), records(frame)), .close(name(reel))]
  }

  @Test func segmentsFollowEachOtherOnTheDisk() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(), name())
    disk.reels.take(segment([1]) + segment([2, 2]))
    await disk.reels.drain()
    #expect(disk.told.written == records([1]).count + records([2, 2]).count && disk.told.failed.isEmpty)
    let rows = try disk.storage.segments(of: Self.id, reel: 2, from: 0, limit: 9)
    #expect(rows.map(\.number) == [0, 1] && rows.map(\.start) == [Self.start, Self.start])
    var previous = SegmentHash.zeros
    for row in rows {
      let bytes = try await disk.store.read(Self.id, reel: 2, segment: row.number, from: 0, count: 1 << 20)
      let header = try SegmentHeader(parsing: bytes.span.bytes)
      #expect(!header.isSealed && header.previous == previous && header.number == row.number && header.reel == 2)
      #expect(SegmentHash(HashAlgorithm.sha256.digest(of: bytes)) == row.hash && bytes.count == row.byteCount)
      previous = row.hash
    }
    #expect(try disk.storage.recording(Self.id)?.reels.map(\.user) == [Self.bob])
    #expect(disk.store.statistics.counts.segments == 2)
  }

  @Test func keysAreStoredWithTheReel() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(), name())
    disk.reels.add(keys(7), name())
    await disk.reels.drain()
    #expect(try disk.storage.trackKeys(of: Self.id).isEmpty, "there is nothing to open")
    disk.reels.take(segment([1]))
    disk.reels.add(keys(8), name())
    disk.reels.add(keys(8), name())
    await disk.reels.drain()
    #expect(try disk.storage.trackKeys(of: Self.id) == [keys(7), keys(8)])
    #expect(try disk.storage.people(of: Self.id) == [person()])
  }

  @Test func aRecordingFinishesWithItsLastReel() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(2), name(2))
    disk.reels.join(person(3), name(3))
    disk.reels.take(segment([1], 2) + segment([2], 3))
    disk.reels.end(Self.id)
    disk.reels.take([.end(name(2))])
    await disk.reels.drain()
    #expect(disk.told.finished.isEmpty)
    disk.reels.take([.end(name(3))])
    await disk.reels.drain()
    while disk.told.finished.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
    #expect(try disk.storage.recording(Self.id)?.state == .finished)
    #expect(disk.store.runningCalls.isEmpty)
  }

  @Test func anErasedReelIsGoneAndMayBeginAgain() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(), name())
    disk.reels.take(segment([1]))
    disk.reels.add(keys(7), name())
    disk.reels.take([.erase(name())])
    await disk.reels.drain()
    #expect(try disk.storage.recording(Self.id)?.reels.isEmpty == true)
    #expect(try disk.storage.trackKeys(of: Self.id).isEmpty && disk.storage.people(of: Self.id).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: disk.store.folder.path(of: Self.id, reel: 2)))
    #expect(disk.store.statistics.bytes == 0)
    disk.reels.take(segment([5]))
    await disk.reels.drain()
    #expect(try disk.storage.segments(of: Self.id, reel: 2, from: 0, limit: 9).map(\.number) == [0])
  }

  @Test func aRecordingWithoutRoomEnds() async throws {
    let disk = try await Disk { $0.limits.userBytes = 150 }
    try await disk.begin()
    disk.reels.join(person(), name())
    disk.reels.take(segment([UInt8](repeating: 1, count: 100)) + segment([2]) + segment([3]))
    await disk.reels.drain()
    #expect(disk.told.failed == [.quota], "told once")
    #expect(disk.told.written > 0, "nothing waits for ever")
    let full = try await Disk { $0.reserve = .max }
    full.store.ledger.withLock {
      $0.begin(
        StoredRecording(
          id: Self.id, kind: .call, owner: Device(user: Self.bob, device: DeviceID(unchecked: "d")),
          startedAt: Timestamp(milliseconds: 0), expiresAt: Timestamp(milliseconds: 1), reels: []))
    }
    full.reels.join(person(), name())
    full.reels.take(segment([1]))
    await full.reels.drain()
    #expect(full.told.failed == [.diskFull])
  }

  @Test func aStrangersReelIsNotWritten() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.take(segment([1]))
    await disk.reels.drain()
    #expect(disk.told.failed == [.notFound] && disk.told.written == records([1]).count)
    #expect(try disk.storage.recording(Self.id)?.reels.isEmpty == true)
  }

  // MARK: after a death

  @Test(arguments: [0, 1, 5, 40]) func theSegmentThatWasWrittenIsClosedByTheNextStart(cut: Int) async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(), name())
    let open = records([1, 2, 3], ends: false)
    disk.reels.take(segment([1]) + [.begin(name(), start: Self.start + 9), .write(name(), open)])
    await disk.reels.drain()
    let path = disk.store.folder.openPath(of: Self.id, reel: 2)
    let bytes = try Files.read(path, from: 0, count: 1 << 20)
    try Files.write(Array(bytes.dropLast(cut)), to: path)
    let again = try await Disk(disk.folder)
    #expect(!FileManager.default.fileExists(atPath: path))
    let rows = try again.storage.segments(of: Self.id, reel: 2, from: 0, limit: 9)
    // A cut within the header leaves nothing to keep.
    #expect(rows.count == (cut == 40 ? 1 : 2))
    guard let last = rows.last, rows.count == 2 else { return withExtendedLifetime(disk) {} }
    let stored = try await again.store.read(Self.id, reel: 2, segment: 1, from: 0, count: 1 << 20)
    let header = try SegmentHeader(parsing: stored.span.bytes)
    #expect(header.previous == rows[0].hash && SegmentHash(HashAlgorithm.sha256.digest(of: stored)) == last.hash)
    let contents = SegmentContents(
      parsing: Array(stored[SegmentHeader.byteCount...]).span.bytes, start: header.start)
    #expect(contents.ending == .closed(.recovered))
    let frames = contents.records.count { if case .frame = $0 { true } else { false } }
    #expect(frames == (cut == 0 ? 1 : 0), "as far as its last whole record")
    again.reels.join(person(), name())
    again.reels.take(segment([4]))
    await again.reels.drain()
    #expect(try again.storage.segments(of: Self.id, reel: 2, from: 2, limit: 9).count == 1, "the reel goes on")
    withExtendedLifetime(disk) {}
  }

  @Test func aWholeFileWithoutItsRowIsAdopted() async throws {
    let disk = try await Disk()
    try await disk.begin()
    disk.reels.join(person(), name())
    disk.reels.take(segment([1]))
    await disk.reels.drain()
    let first = try disk.storage.segments(of: Self.id, reel: 2, from: 0, limit: 1)[0]
    let header = SegmentHeader(
      recording: Self.id, reel: 2, number: 1, start: Self.start, previous: first.hash)
    try Files.write(
      header.bytes + records([2]), to: disk.store.folder.path(of: Self.id, reel: 2, segment: 1))
    let again = try await Disk(disk.folder)
    #expect(try again.storage.segments(of: Self.id, reel: 2, from: 0, limit: 9).count == 2)
    #expect(again.store.runningCalls == [Self.id])
    withExtendedLifetime(disk) {}
  }
}

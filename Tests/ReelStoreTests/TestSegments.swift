import CallMessages
import Contract
import Cryptography
import Foundation
import MediaModel
import Octets
import Persistence
import Recording
import Seeded

@testable import ReelStore

let start = Timestamp(milliseconds: 1_800_000_000_000)
let alice = Device(user: UserID("alice")!, device: DeviceID("phone")!)
let bob = Device(user: UserID("bob")!, device: DeviceID("laptop")!)

func id(_ number: UInt8) -> RecordingID { RecordingID([UInt8](repeating: number, count: 16))! }

func recording(_ number: UInt8, of owner: Device = alice, expiresIn seconds: Int = 86_400) -> StoredRecording {
  StoredRecording(
    id: id(number), kind: .own, owner: owner, startedAt: start, expiresAt: start + .seconds(seconds),
    reels: [StoredReel(number: 1, user: owner.user)])
}

/// The segments of one reel as a device makes them. The contents are random, because the server opens none.
struct SegmentMaker {
  let recording: RecordingID
  var number: UInt32 = 0
  var previous = [UInt8](repeating: 0, count: 32)
  var random: SeededGenerator

  init(_ recording: RecordingID, seed: UInt64 = 1) {
    self.recording = recording
    random = SeededGenerator(seed: seed)
  }

  var head: ReelHead { ReelHead(segments: number, hash: SegmentHash(previous)!) }

  mutating func next(_ count: Int = 1_000) -> [UInt8] {
    var bytes: [UInt8] = Array("CREC".utf8) + [1, 1, 0, 96] + recording.bytes
    bytes += UInt32(1).networkOrderBytes + number.networkOrderBytes
    bytes += UInt64(1_800_000_000_000_000 + 2_000_000 * Int(number)).networkOrderBytes
    bytes += previous + random.bytes(12) + [UInt8](repeating: 0, count: 12)
    bytes += random.bytes(count - bytes.count)
    number += 1
    previous = HashAlgorithm.sha256.digest(of: bytes)
    return bytes
  }
}

/// A folder and a database that go with the test; each store on them is one start of a server.
final class TestPlace: Sendable {
  let path = NSTemporaryDirectory() + "recordings-\(UInt64.random(in: .min ... .max))"
  var folder: String { path + "/segments" }

  init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func database() throws -> (SQLiteStore, FencingToken) {
    let store = try SQLiteStore(path: path + "/conclave.sqlite")
    return (store, try store.load(now: start).token)
  }

  func open(
    _ limits: RecordingLedger.Limits = .init(), reserve: Int64 = 0, clock: TestClock = TestClock()
  ) async throws -> (store: RecordingStore, storage: FaultyStorage) {
    let (database, token) = try database()
    let storage = FaultyStorage(database)
    var configuration = RecordingStore.Configuration(folder: folder)
    (configuration.limits, configuration.reserve) = (limits, reserve)
    let store = RecordingStore(configuration, storage: storage, token: token, clock: { clock.now })
    try await store.recover()
    return (store, storage)
  }

  func file(_ number: UInt8, _ segment: UInt32, reel: UInt32 = 1) -> String {
    SegmentFolder(path: folder).path(of: id(number), reel: reel, segment: segment)
  }

  func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}

extension RecordingStore {
  /// Admits, stores and releases a segment.
  func put(_ bytes: [UInt8], into recording: RecordingID) async throws -> Append {
    let upload = try admit(recording, reel: 1, byteCount: bytes.count)
    defer { release(upload) }
    return try await append(bytes, of: upload)
  }

  /// Waits until files that were to go are gone.
  func settle() async throws { try await lanes.run(on: .removal) {} }
}

package import Contract
import Cryptography
import LinuxIO
package import MediaModel
package import Recording
package import Reels
import Synchronization

/// Writes the reels of recorded calls, as `ReelTable` hands them out: a file for each segment, and its row once the file is whole.
///
/// Each reel stays on one queue, in order. No caller waits. `ReelTable` bounds what waits here, by the bytes that were not reported by `written`.
package final class CallReels: Sendable {
  /// The listener is called on a queue of the store.
  package struct Listener: Sendable {
    /// Bytes of a reel are on the disk, or lost.
    package var written: @Sendable (ReelName, Int) -> Void
    /// Nothing more of the recording can be stored.
    package var failed: @Sendable (RecordingID, RecordingRefusal) -> Void
    /// All of an ended recording is stored.
    package var finished: @Sendable (RecordingID) -> Void

    package init(
      written: @escaping @Sendable (ReelName, Int) -> Void,
      failed: @escaping @Sendable (RecordingID, RecordingRefusal) -> Void,
      finished: @escaping @Sendable (RecordingID) -> Void
    ) {
      self.written = written
      self.failed = failed
      self.finished = finished
    }
  }

  /// Keys that wait for their reel's first segment.
  private static let maximumKeys = 64

  private struct State {
    var people: [ReelName: RecordedPerson] = [:]
    /// Keys of reels without a segment yet.
    var keys: [ReelName: [TrackKeys]] = [:]
    /// Recordings that have ended, and finish with their last reel.
    var ended: Set<RecordingID> = []
    var failed: Set<RecordingID> = []
  }

  /// A reel's segment, on the reel's queue.
  private final class Open {
    let file: AppendedFile
    let number: UInt32
    let start: Int64
    var byteCount: Int

    init(_ file: AppendedFile, number: UInt32, start: Int64, byteCount: Int) {
      self.file = file
      self.number = number
      self.start = start
      self.byteCount = byteCount
    }
  }

  private let store: RecordingStore
  private let listener: Listener
  private let state = Mutex(State())
  /// The open segments of each queue; each is used on its queue only.
  private let open: [DiskLanes.Lane: OpenSegments] = [.firstWriter: OpenSegments(), .secondWriter: OpenSegments()]

  private final class OpenSegments: @unchecked Sendable { var segments: [ReelName: Open] = [:] }

  package init(_ store: RecordingStore, _ listener: Listener) {
    self.store = store
    self.listener = listener
  }

  // MARK: what the calls say

  /// A participant agreed: a reel of it may begin.
  package func join(_ person: RecordedPerson, _ name: ReelName) { state.withLock { $0.people[name] = person } }

  /// Keys of a participant's tracks. They are stored once its reel has something to open.
  package func add(_ keys: TrackKeys, _ name: ReelName) {
    store.lanes.start(on: lane(name)) { [self] () throws(RecordingRefusal) in
      guard store.ledger.withLock({ $0.position(of: name.recording, reel: name.reel) }) == nil else {
        return try store.write([.trackKeys(name.recording, keys)])
      }
      state.withLock { state in
        guard state.people[name] != nil else { return }
        state.keys[name, default: []].append(keys)
        if state.keys[name]?.count ?? 0 > Self.maximumKeys { state.keys[name]?.removeFirst() }
      }
    } done: { [self] result in
      if case .failure(let refusal) = result { fail(name.recording, refusal) }
    }
  }

  /// The recording has ended. It finishes with its last reel.
  package func end(_ id: RecordingID) {
    let isLast = state.withLock { state in
      state.ended.insert(id)
      return !state.people.keys.contains { $0.recording == id }
    }
    if isLast { finish(id) }
  }

  private func finish(_ id: RecordingID) {
    store.lanes.start(on: .rows) { [store] () throws(RecordingRefusal) in
      try store.write([.ended(id, .finished)])
      store.ledger.withLock { _ = $0.end(id) }
    } done: { [self] _ in
      state.withLock { state in
        state.ended.remove(id)
        state.failed.remove(id)
      }
      listener.finished(id)
    }
  }

  /// Waits until everything that was handed over is on the disk, or lost.
  package func drain() async {
    for lane in [DiskLanes.Lane.firstWriter, .secondWriter] {
      try? await store.lanes.run(on: lane) { () throws(RecordingRefusal) in }
    }
  }

  // MARK: what the reels say

  package func take(_ outputs: [ReelOutput]) {
    for output in outputs {
      switch output {
      case .begin(let name, let start): run(name) { () throws(RecordingRefusal) in try self.begin(name, start: start) }
      case .write(let name, let bytes):
        run(name) { () throws(RecordingRefusal) in
          defer { self.listener.written(name, bytes.count) }
          try self.append(bytes, to: name)
        }
      case .close(let name): run(name) { () throws(RecordingRefusal) in try self.close(name) }
      case .end(let name): run(name) { () throws(RecordingRefusal) in self.end(name) }
      case .erase(let name): run(name) { () throws(RecordingRefusal) in try self.erase(name) }
      }
    }
  }

  private func lane(_ name: ReelName) -> DiskLanes.Lane {
    (name.recording.hashValue ^ Int(name.reel)) & 1 == 0 ? .firstWriter : .secondWriter
  }

  /// A failure ends the segment that is being written: the reel goes on with the next one.
  private func run(_ name: ReelName, _ work: @escaping @Sendable () throws(RecordingRefusal) -> Void) {
    store.lanes.start(on: lane(name), work) { [self] result in
      guard case .failure(let refusal) = result else { return }
      open[lane(name)]?.segments[name] = nil
      fail(name.recording, refusal)
    }
  }

  /// Told once of each recording.
  private func fail(_ id: RecordingID, _ refusal: RecordingRefusal) {
    store.count { $0.refused(refusal) }
    if state.withLock({ $0.failed.insert(id).inserted }) { listener.failed(id, refusal) }
  }

  private func begin(_ name: ReelName, start: Int64) throws(RecordingRefusal) {
    let (id, reel) = (name.recording, name.reel)
    if store.ledger.withLock({ $0.position(of: id, reel: reel) }) == nil {
      guard let person = state.withLock({ $0.people[name] }) else { throw .notFound }
      let stored = StoredReel(number: reel, user: person.user)
      let keys = state.withLock { $0.keys.removeValue(forKey: name) } ?? []
      try store.write([.reel(id, stored, person)] + keys.map { .trackKeys(id, $0) })
      store.ledger.withLock { _ = $0.add(stored, to: id) }
    }
    guard let position = store.ledger.withLock({ $0.position(of: id, reel: reel) }) else { throw .notFound }
    guard store.ledger.withLock({ $0.hasRoom(for: id) }) else { throw .quota }
    guard try store.freeBytes() > store.reserve else { throw .diskFull }
    let header = SegmentHeader(
      recording: id, reel: reel, number: position.next, start: start, previous: position.head
    ).bytes
    do throws(SystemError) {
      let file = try store.folder.begin(id, reel: reel)
      try file.append(header)
      open[lane(name)]?.segments[name] = Open(file, number: position.next, start: start, byteCount: header.count)
    } catch {
      throw store.refusal(error)
    }
  }

  private func append(_ bytes: [UInt8], to name: ReelName) throws(RecordingRefusal) {
    // It failed to begin, which was told.
    guard let segment = open[lane(name)]?.segments[name] else { return }
    do throws(SystemError) {
      try segment.file.append(bytes)
    } catch {
      throw store.refusal(error)
    }
    segment.byteCount += bytes.count
  }

  private func close(_ name: ReelName) throws(RecordingRefusal) {
    guard let segment = open[lane(name)]?.segments.removeValue(forKey: name) else { return }
    let (id, reel) = (name.recording, name.reel)
    let path = store.folder.path(of: id, reel: reel, segment: segment.number)
    let bytes: [UInt8]
    do throws(SystemError) {
      try segment.file.finish(as: path)
      // The bytes were written a moment ago and are in the page cache.
      bytes = try Files.read(path, from: 0, count: segment.byteCount)
    } catch {
      throw store.refusal(error)
    }
    guard bytes.count == segment.byteCount, let hash = SegmentHash(HashAlgorithm.sha256.digest(of: bytes)) else {
      throw .unavailable
    }
    let stored = StoredSegment(number: segment.number, byteCount: bytes.count, hash: hash, start: segment.start)
    try store.write([.segment(id, reel: reel, stored)])
    guard store.ledger.withLock({ $0.append(stored, to: id, reel: reel) }) else {
      // It was deleted meanwhile.
      return try store.removeOrphan(id)
    }
    store.count { $0.stored(bytes.count) }
  }

  private func end(_ name: ReelName) {
    // A segment that never closed is no longer of use.
    open[lane(name)]?.segments[name] = nil
    let isLast = state.withLock { state in
      state.people[name] = nil
      state.keys[name] = nil
      return state.ended.contains(name.recording) && !state.people.keys.contains { $0.recording == name.recording }
    }
    if isLast { finish(name.recording) }
  }

  private func erase(_ name: ReelName) throws(RecordingRefusal) {
    open[lane(name)]?.segments[name] = nil
    let (id, reel) = (name.recording, name.reel)
    state.withLock { $0.keys[name] = nil }
    guard let recording = store.ledger.withLock({ $0[id] }) else { return }
    // Rows before files: a crash leaves files without keys.
    try store.write([.reelGone(id, reel: reel)])
    store.ledger.withLock { $0.remove(reel: reel, of: recording) }
    store.folder.remove(id, reel: reel)
  }
}

package import CallMessages
package import Contract
import Cryptography
import Dispatch
import LinuxIO
package import MediaModel
package import Recording
import Synchronization

/// The recordings of a server: files of segments in a folder, and rows about them in the database.
///
/// A segment counts once its file and then its row are on the disk. So a file without a row may be left, which the next start adopts if it continues its reel; and
/// rows go before files, so that a crash leaves files without keys, which the next start removes.
///
/// The functions are asynchronous, and what waits for the disk waits on queues of its own.
package final class RecordingStore: Sendable {
  package struct Configuration: Sendable {
    package var folder: String
    package var limits = RecordingLedger.Limits()
    /// The most bytes of all recordings; nil: a quarter of the file system.
    package var totalBytes: Int64?
    /// Bytes of the file system that recordings leave free.
    package var reserve: Int64 = 1 << 30

    package init(folder: String) { self.folder = folder }
  }

  package enum Append: Hashable, Sendable {
    case stored
    /// The same bytes were there.
    case repeated
  }

  let folder: SegmentFolder
  let storage: any Storage
  let token: FencingToken
  let lanes: DiskLanes
  let ledger: Mutex<RecordingLedger>
  let reserve: Int64
  let totalBytes: Int64?
  private let counts = Mutex(RecordingCounts())
  /// When the newest segment of each running recording came, or it began; those of an earlier run are not in it.
  let heard = Mutex<[RecordingID: Instant]>([:])
  private let openedAt: Instant
  private let now: @Sendable () -> Instant

  /// Nothing is read or written before `recover`.
  /// - Parameters:
  ///   - token: of this start.
  ///   - clock: the monotonic clock.
  package init(
    _ configuration: Configuration, storage: any Storage, token: FencingToken,
    clock: @escaping @Sendable () -> Instant = { MonotonicClock.now() }
  ) {
    folder = SegmentFolder(path: configuration.folder)
    self.storage = storage
    self.token = token
    lanes = DiskLanes(now: clock)
    now = clock
    openedAt = clock()
    ledger = Mutex(RecordingLedger(limits: configuration.limits))
    reserve = configuration.reserve
    totalBytes = configuration.totalBytes
  }

  package var statistics: RecordingStatistics {
    let state = ledger.withLock { $0 }
    return RecordingStatistics(
      recordings: state.recordingCount, running: state.runningCount, drafts: state.draftCount, bytes: state.bytes,
      uploadBytes: state.reserved, isStuck: lanes.isStuck, counts: counts.withLock { $0 })
  }

  func count(_ change: (inout RecordingCounts) -> Void) { counts.withLock { change(&$0) } }

  // MARK: recordings

  /// Begins a recording; it has its reels and no segment. Begun once more by the same device with the same statement, it goes on.
  /// - Parameters:
  ///   - statement: what the device says about it.
  ///   - facts: what else is stored about it, each time.
  ///   - granting: who may open it.
  /// - Returns: which of the grants are new.
  @discardableResult package func begin(
    _ recording: StoredRecording, as statement: RecordingStatement? = nil, with facts: [RecordingFact] = [],
    _ granting: Granting? = nil
  ) async throws(RecordingRefusal) -> NewGrants {
    try await counting { [self] () async throws(RecordingRefusal) in
      guard !lanes.isStuck else { throw .unavailable }
      return try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in
        let known = try reading { store throws(StoreError) in try store.recording(recording.id) }
        if let known {
          let record = try reading { store throws(StoreError) in try store.record(of: recording.id) }
          guard known.owner == recording.owner, statement == nil || record == nil || record?.statement == statement
          else {
            throw .taken
          }
          guard known.state == .running else { throw .notFound }
        }
        var (granted, more): (NewGrants, [RecordingFact]) = (NewGrants(), [])
        if let granting {
          (granted, more) = try checked(granting, for: known ?? recording, isNew: known == nil)
        }
        if let known {
          try write(facts + more)
          ledger.withLock { $0.resume(known) }
        } else {
          let isDraft = recording.isDraft && granted.grants.isEmpty
          try ledger.withLock { ledger throws(RecordingRefusal) in
            try ledger.checkRoom(for: recording.owner.user, isDraft: isDraft)
          }
          guard try freeBytes() > reserve else { throw .diskFull }
          try write([.begun(recording)] + facts + more)
          ledger.withLock { $0.begin(recording) }
          hear(recording.id)
        }
        if let granting { keep(known ?? recording, granting, granted) }
        return granted
      }
    }
  }

  private func hear(_ id: RecordingID) {
    let time = now()
    heard.withLock { $0[id] = time }
  }

  /// For how long nothing has come for the recording; nil if it does not run.
  package func silence(of id: RecordingID) -> Duration? {
    guard ledger.withLock({ $0[id] != nil }) else { return nil }
    return (heard.withLock { $0[id] } ?? openedAt).duration(to: now())
  }

  /// The device has sent all segments.
  /// - Parameters:
  ///   - heads: of each reel, signed by the device.
  ///   - facts: what is stored with the end.
  package func finish(
    _ id: RecordingID, heads: [UInt32: ReelHead], with facts: [RecordingFact] = []
  ) async throws(RecordingRefusal) {
    try await counting { [self] () async throws(RecordingRefusal) in
      try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in
        let known = try reading { store throws(StoreError) in try store.recording(id) }
        if known?.state == .finished { return }
        // A recording that was cut off may lack segments, and takes none any more.
        guard known?.state != .cutOff else { throw .notFound }
        let ended = try ledger.withLock { ledger throws(RecordingRefusal) in
          try ledger.checkEnd(of: id, heads: heads)
          // From now on it takes no uploads.
          return ledger.end(id)
        }
        try end(ended, id, as: .finished, with: facts)
      }
    }
  }

  /// Writes that the recording has ended, which the ledger knows already.
  /// - Parameter ended: as the ledger had it.
  func end(
    _ ended: StoredRecording?, _ id: RecordingID, as state: RecordingState, with facts: [RecordingFact] = []
  ) throws(RecordingRefusal) {
    do throws(RecordingRefusal) {
      try write(facts + [.ended(id, state)])
    } catch {
      if let ended { ledger.withLock { $0.resume(ended) } }
      throw error
    }
  }

  // MARK: segments

  /// A segment of this length is going to come. The caller reads it and hands it to `append`; in each case it calls `release`.
  package func admit(_ id: RecordingID, reel: UInt32, byteCount: Int) throws(RecordingRefusal) -> RecordingLedger.Upload
  {
    do throws(RecordingRefusal) {
      guard !lanes.isStuck else { throw .unavailable }
      return try ledger.withLock { ledger throws(RecordingRefusal) in
        try ledger.admit(id, reel: reel, byteCount: byteCount)
      }
    } catch {
      count { $0.refused(error) }
      throw error
    }
  }

  package func release(_ upload: RecordingLedger.Upload) { ledger.withLock { $0.release(upload) } }

  /// Stores a segment that continues its reel.
  /// - Parameters:
  ///   - bytes: as many as were admitted.
  ///   - facts: called before the segment is written, on a queue of the store. It may refuse the segment, and returns what is stored with it.
  package func append(
    _ bytes: [UInt8], of upload: RecordingLedger.Upload,
    with facts: @escaping @Sendable (StoredSegment) throws(RecordingRefusal) -> [RecordingFact] = { _ in [] }
  ) async throws(RecordingRefusal) -> Append {
    try await counting { [self] () async throws(RecordingRefusal) in
      let lane: DiskLanes.Lane = (upload.recording.hashValue ^ Int(upload.reel)) & 1 == 0 ? .firstWriter : .secondWriter
      switch try await lanes.run(
        on: lane, { [self] () throws(RecordingRefusal) in try write(bytes, of: upload, facts) })
      {
      case .written(let segment, let more):
        try await writing([.segment(upload.recording, reel: upload.reel, segment)] + more)
        guard ledger.withLock({ $0.commit(segment, of: upload) }) else {
          // It was deleted meanwhile, perhaps with its folder before this file was in it.
          try await lanes.run(on: .removal) { [self] () throws(RecordingRefusal) in try removeOrphan(upload.recording) }
          throw .notFound
        }
        hear(upload.recording)
        count { $0.stored(segment.byteCount) }
        return .stored
      case .earlier(let number, let hash, let position):
        let kept = try await lanes.run(on: .reader) { [self] () throws(RecordingRefusal) in
          try reading { store throws(StoreError) in
            try store.segments(of: upload.recording, reel: upload.reel, from: number, limit: 1)
          }
        }
        guard kept.first?.number == number, kept.first?.hash == hash else { throw .conflict(position) }
        return .repeated
      }
    }
  }

  private enum Written: Sendable {
    case written(StoredSegment, [RecordingFact])
    case earlier(number: UInt32, SegmentHash, ReelPosition)
  }

  /// On a writer's lane.
  private func write(
    _ bytes: [UInt8], of upload: RecordingLedger.Upload,
    _ facts: (StoredSegment) throws(RecordingRefusal) -> [RecordingFact]
  ) throws(RecordingRefusal) -> Written {
    guard bytes.count == upload.byteCount, let header = try? SegmentHeader(parsing: bytes.span.bytes),
      let hash = SegmentHash(HashAlgorithm.sha256.digest(of: bytes))
    else { throw .invalid }
    let place = try ledger.withLock { ledger throws(RecordingRefusal) in try ledger.place(header, of: upload) }
    if case .earlier(let position) = place { return .earlier(number: header.number, hash, position) }
    let segment = StoredSegment(number: header.number, byteCount: bytes.count, hash: hash, start: header.start)
    let more = try facts(segment)
    guard try freeBytes() - Int64(bytes.count) >= reserve else { throw .diskFull }
    do throws(SystemError) {
      try folder.write(bytes, to: upload.recording, reel: upload.reel, segment: header.number)
    } catch {
      throw refusal(error)
    }
    return .written(segment, more)
  }

  /// The length of a segment's file; nil if there is none.
  package func byteCount(
    of id: RecordingID, reel: UInt32, segment number: UInt32
  ) async throws(RecordingRefusal) -> Int? {
    try await lanes.run(on: .reader) { [self] () throws(RecordingRefusal) in
      Files.byteCount(of: folder.path(of: id, reel: reel, segment: number))
    }
  }

  /// A part of a segment's file, shorter at its end.
  package func read(
    _ id: RecordingID, reel: UInt32, segment number: UInt32, from offset: Int, count: Int
  ) async throws(RecordingRefusal) -> [UInt8] {
    try await lanes.run(on: .reader) { [self] () throws(RecordingRefusal) in
      do throws(SystemError) {
        return try Files.read(folder.path(of: id, reel: reel, segment: number), from: offset, count: count)
      } catch {
        throw refusal(error)
      }
    }
  }

  /// Asks the database about recordings.
  package func ask<Value: Sendable>(
    _ question: @escaping @Sendable (any Storage) throws(StoreError) -> Value
  ) async throws(RecordingRefusal) -> Value {
    try await lanes.run(on: .reader) { [self] () throws(RecordingRefusal) in try reading(question) }
  }

  /// Writes facts that change no reel.
  package func note(_ facts: [RecordingFact]) async throws(RecordingRefusal) {
    try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in try write(facts) }
  }

  /// nil if there is none, or it was deleted.
  package func recording(_ id: RecordingID) async throws(RecordingRefusal) -> StoredRecording? {
    if let running = ledger.withLock({ $0[id] }) { return running }
    return try await ask { store throws(StoreError) in try store.recording(id) }
  }

  /// The recordings of calls that have not ended.
  package var runningCalls: [RecordingID] {
    ledger.withLock { $0.recordings.filter { $0.kind == .call }.map(\.id) }
  }

  /// The bytes that the user may still store.
  package func room(of user: UserID) -> Int64 { ledger.withLock { $0.room(of: user) } }

  // MARK: what the disk and the database say

  func freeBytes() throws(RecordingRefusal) -> Int64 {
    do throws(SystemError) {
      return try Files.freeBytes(at: folder.path)
    } catch {
      throw refusal(error)
    }
  }

  func refusal(_ error: SystemError) -> RecordingRefusal {
    count { $0.failures &+= 1 }
    return error.isDiskFull ? .diskFull : .unavailable
  }

  func reading<Value>(_ body: (any Storage) throws(StoreError) -> Value) throws(RecordingRefusal) -> Value {
    do {
      return try body(storage)
    } catch {
      count { $0.failures &+= 1 }
      throw .unavailable
    }
  }

  func counting<Value: Sendable>(
    _ body: () async throws(RecordingRefusal) -> Value
  ) async throws(RecordingRefusal) -> Value {
    do {
      return try await body()
    } catch {
      count { $0.refused(error) }
      throw error
    }
  }

  /// Writes the facts; waits for it without a thread.
  private func writing(_ facts: [RecordingFact]) async throws(RecordingRefusal) {
    let error = await withCheckedContinuation { done in
      storage.write(facts.map(StoreChange.recording), as: token) { done.resume(returning: $0) }
    }
    if error != nil {
      count { $0.failures &+= 1 }
      throw .unavailable
    }
  }

  /// Writes the facts; the thread waits for it.
  func write(_ facts: [RecordingFact]) throws(RecordingRefusal) {
    let failed = Mutex(false)
    let done = DispatchSemaphore(value: 0)
    storage.write(facts.map(StoreChange.recording), as: token) { error in
      failed.withLock { $0 = error != nil }
      done.signal()
    }
    done.wait()
    guard failed.withLock({ $0 }) else { return }
    count { $0.failures &+= 1 }
    throw .unavailable
  }
}

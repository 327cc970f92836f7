package import CallMessages
import Contract
import Cryptography
import LinuxIO
package import MediaModel
package import Recording
import Synchronization

/// Starts and deletions.
extension RecordingStore {
  /// Reads what the last run left: files that continue their reels without a row are adopted, and what nobody knows is removed. Called once, before anything else.
  /// - Throws: `StoreError` in words for the operator, if folder or database cannot be used.
  package func recover() async throws(StoreError) {
    var stored = try await waiting { [self] () throws(StoreError) in
      do {
        try folder.make()
      } catch {
        throw StoreError(
          .cannotOpen, "\(folder.path): \(error); check that it is the server's own, or name another recordings.folder")
      }
      return try storage.recordings()
    }
    var limits = ledger.withLock { $0.limits }
    limits.totalBytes = totalBytes ?? (try? Files.totalBytes(at: folder.path)).map { $0 / 4 } ?? .max
    let found = stored
    let adopted = try await waiting { [self] () throws(StoreError) in found.running.map(adopt) }
    for (recording, segments) in adopted {
      guard let place = stored.running.firstIndex(where: { $0.id == recording.id }) else { continue }
      stored.running[place] = recording
      let bytes = segments.reduce(0) { $0 + Int64($1.1.byteCount) }
      stored.usage[recording.owner.user, default: StoredUsage()].bytes += bytes
    }
    let facts = adopted.flatMap { recording, segments in
      segments.map { RecordingFact.segment(recording.id, reel: $0, $1) }
    }
    if !facts.isEmpty {
      try await waiting { [self] () throws(StoreError) in
        do throws(RecordingRefusal) {
          try write(facts)
        } catch {
          throw StoreError(.failed, "\(folder.path): the rows of \(facts.count) segments could not be written")
        }
      }
      count { $0.adopted &+= UInt64(facts.count) }
    }
    let state = RecordingLedger(limits: limits, restoring: stored)
    ledger.withLock { $0 = state }
    sweep()
  }

  /// - Returns: the recording with its new positions, and the segments that it did not know, by reel.
  private func adopt(_ recording: StoredRecording) -> (StoredRecording, [(UInt32, StoredSegment)]) {
    var recording = recording
    var segments: [(UInt32, StoredSegment)] = []
    for place in recording.reels.indices {
      let reel = recording.reels[place].number
      folder.removePartial(of: recording.id, reel: reel)
      func adoptAll() {
        while let segment = segment(behind: recording.reels[place], of: recording) {
          recording.reels[place].position.append(segment)
          segments.append((reel, segment))
        }
      }
      adoptAll()
      if recording.kind == .call {
        closeOpen(recording.reels[place], of: recording.id)
        adoptAll()
      }
      let next = recording.reels[place].position.next
      for number in folder.segments(of: recording.id, reel: reel) where number >= next {
        folder.remove(recording.id, reel: reel, segment: number)
      }
    }
    return (recording, segments)
  }

  /// Ends the segment of a call that the last run was writing: cut behind its last whole record, and closed. It is removed if it does not
  /// continue its reel or has no record.
  private func closeOpen(_ reel: StoredReel, of id: RecordingID) {
    let path = folder.openPath(of: id, reel: reel.number)
    defer { folder.removeOpen(id, reel: reel.number) }
    guard let count = Files.byteCount(of: path), count <= SegmentHeader.maximumSegmentBytes,
      let bytes = try? Files.read(path, from: 0, count: count),
      let header = try? SegmentHeader(parsing: bytes.span.bytes)
    else { return }
    guard !header.isSealed, header.recording == id, header.reel == reel.number, reel.position.isContinued(by: header),
      let closed = SegmentWriter.closing(Array(bytes[SegmentHeader.byteCount...]), start: header.start)
    else { return }
    // A failure loses this segment, and no more.
    try? folder.write(
      bytes[..<SegmentHeader.byteCount] + closed, to: id, reel: reel.number, segment: header.number)
  }

  /// The file that continues the reel, if there is one.
  private func segment(behind reel: StoredReel, of recording: StoredRecording) -> StoredSegment? {
    let id = recording.id
    let path = folder.path(of: id, reel: reel.number, segment: reel.position.next)
    guard let count = Files.byteCount(of: path), count <= SegmentHeader.maximumSegmentBytes,
      let bytes = try? Files.read(path, from: 0, count: count),
      let header = try? SegmentHeader(parsing: bytes.span.bytes),
      header.isSealed == (recording.kind != .call), header.recording == id, header.reel == reel.number,
      reel.position.isContinued(by: header),
      let hash = SegmentHash(HashAlgorithm.sha256.digest(of: bytes))
    else { return nil }
    return StoredSegment(number: header.number, byteCount: count, hash: hash, start: header.start)
  }

  /// Deletes a recording, rows before files.
  /// - Parameter owner: only if it is this user's; nil for anybody's.
  /// - Returns: the recording and its readers; nil if there was none.
  @discardableResult package func delete(
    _ id: RecordingID, of owner: UserID? = nil
  ) async throws(RecordingRefusal) -> (StoredRecording, [StoredReader])? {
    let deleted = try await lanes.run(on: .rows) {
      [self] () throws(RecordingRefusal) -> (StoredRecording, [StoredReader])? in
      guard let recording = try reading({ store throws(StoreError) in try store.recording(id) }),
        owner == nil || owner == recording.owner.user
      else { return nil }
      let readers = try reading { store throws(StoreError) in try store.readers(of: id) }
      try write([.gone(id)])
      ledger.withLock { $0.remove(recording) }
      return (recording, readers)
    }
    if deleted != nil { try await lanes.run(on: .removal) { [self] () throws(RecordingRefusal) in folder.remove(id) } }
    return deleted
  }

  /// Deletes one reel of a recording.
  /// - Returns: whether there was one.
  package func erase(_ id: RecordingID, reel number: UInt32) async throws(RecordingRefusal) -> Bool {
    let isThere = try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in
      guard let recording = try reading({ store throws(StoreError) in try store.recording(id) }),
        recording.reels.contains(where: { $0.number == number })
      else { return false }
      try write([.reelGone(id, reel: number)])
      ledger.withLock { $0.remove(reel: number, of: recording) }
      return true
    }
    if isThere {
      try await lanes.run(on: .removal) { [self] () throws(RecordingRefusal) in folder.remove(id, reel: number) }
    }
    return isThere
  }

  /// The user's rows are deleted already; uploads end, and the files go.
  package func forget(_ user: UserID) {
    ledger.withLock { $0.forget(user) }
    sweep()
  }

  /// The recordings whose time is over: those that run are ended, and those that expired are deleted, 100 at a time.
  /// - Returns: whether there is more to do.
  package func expire(now: Timestamp) async throws(RecordingRefusal) -> Bool {
    for id in ledger.withLock({ $0.overdue(now: now) }) {
      try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in
        let ended = ledger.withLock { $0.overdue(now: now).contains(id) ? $0.end(id) : nil }
        // A segment is being written: the next time, then.
        guard let ended else { return }
        try end(ended, id, as: .cutOff)
      }
    }
    let running = ledger.withLock { Set($0.recordings.map(\.id)) }
    heard.withLock { heard in heard = heard.filter { running.contains($0.key) } }
    let expired = try await lanes.run(on: .reader) { [self] () throws(RecordingRefusal) in
      try reading { store throws(StoreError) in try store.recordings(expiredAt: now, limit: 100) }
    }
    for id in expired where try await delete(id) != nil { count { $0.expired &+= 1 } }
    return expired.count == 100
  }

  /// Removes the files that no row names. Returns at once.
  private func sweep() {
    // A database that cannot be read leaves the rest to the next sweep.
    lanes.start(
      on: .removal, { [self] () throws(RecordingRefusal) in for id in folder.recordings() { try removeOrphan(id) } },
      done: { _ in })
  }

  /// Removes what the rows do not name of a recording's folder. A folder is made after its row, so what has no row has none any more.
  func removeOrphan(_ id: RecordingID) throws(RecordingRefusal) {
    guard let recording = try reading({ store throws(StoreError) in try store.recording(id) }) else {
      folder.remove(id)
      count { $0.orphans &+= 1 }
      return
    }
    for reel in folder.reels(of: id) where !recording.reels.contains(where: { $0.number == reel }) {
      folder.remove(id, reel: reel)
      count { $0.orphans &+= 1 }
    }
  }

  private func waiting<Value: Sendable>(
    _ body: @escaping @Sendable () throws(StoreError) -> Value
  ) async throws(StoreError) -> Value {
    let result: Result<Result<Value, StoreError>, RecordingRefusal>
    do throws(RecordingRefusal) {
      result = .success(
        try await lanes.run(on: .rows) { () throws(RecordingRefusal) -> Result<Value, StoreError> in
          do throws(StoreError) {
            return .success(try body())
          } catch {
            return .failure(error)
          }
        })
    } catch {
      result = .failure(error)
    }
    switch result {
    case .success(let answer): return try answer.get()
    case .failure: throw StoreError(.failed, "\(folder.path): the recordings cannot be read")
    }
  }
}

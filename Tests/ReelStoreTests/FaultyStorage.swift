import CallMessages
import Contract
import MediaModel
import Recording
import Synchronization

/// A database that fails, or hangs, when it is told to.
final class FaultyStorage: Storage {
  enum Fault: Sendable { case none, fails, hangs }

  private struct State {
    var fault = Fault.none
    var waiting: [@Sendable () -> Void] = []
  }

  let base: any Storage
  private let state = Mutex(State())

  init(_ base: any Storage) { self.base = base }

  var place: String { base.place }
  func takeForgotten() throws(StoreError) -> [UserID] { try base.takeForgotten() }
  func checkpoint(failed: @escaping @Sendable (StoreError) -> Void) { base.checkpoint(failed: failed) }

  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Writes that hung are done when the fault is over.
  func set(_ fault: Fault) {
    let waiting = state.withLock { state in
      state.fault = fault
      return fault == .none ? exchange(&state.waiting, with: []) : []
    }
    for write in waiting { write() }
  }

  func write(
    _ changes: [StoreChange], as token: FencingToken, done: @escaping @Sendable (StoreError?) -> Void
  ) {
    let fault = state.withLock { state in
      if state.fault == .hangs { state.waiting.append { self.base.write(changes, as: token, done: done) } }
      return state.fault
    }
    switch fault {
    case .none: base.write(changes, as: token, done: done)
    case .fails: done(StoreError(.failed, "as told"))
    case .hangs: break
    }
  }

  func load(now: Timestamp) throws(StoreError) -> Stored { try base.load(now: now) }
  func forget(_ user: UserID) throws(StoreError) { try base.forget(user) }
  func condition(now: @Sendable () -> Timestamp) throws(StoreError) -> StoreCondition? {
    try base.condition(now: now)
  }
  func sweep(now: Timestamp, historyDays: Int) throws(StoreError) -> Bool {
    try base.sweep(now: now, historyDays: historyDays)
  }
  func list(
    of user: UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>, now: Timestamp
  ) throws(StoreError) -> HistoryList {
    try base.list(of: user, before: before, limit: limit, rejoinable: rejoinable, now: now)
  }
  func delete(of user: UserID, calls: [CallID]?) throws(StoreError) { try base.delete(of: user, calls: calls) }
  func totals(of user: UserID, with other: UserID, now: Timestamp) throws(StoreError) -> Totals {
    try base.totals(of: user, with: other, now: now)
  }
  func acquainted(_ user: UserID, with others: [UserID]) throws(StoreError) -> Set<UserID> {
    try base.acquainted(user, with: others)
  }
  func reports(since: Timestamp, limit: Int) throws(StoreError) -> (reports: [StoredReport], total: Int) {
    try base.reports(since: since, limit: limit)
  }
  func report(_ id: ReportID) throws(StoreError) -> StoredReport? { try base.report(id) }
  func recordings() throws(StoreError) -> StoredRecordings { try base.recordings() }
  func recording(_ id: RecordingID) throws(StoreError) -> StoredRecording? { try base.recording(id) }
  func record(of recording: RecordingID) throws(StoreError) -> RecordingRecord? { try base.record(of: recording) }
  func grants(of recording: RecordingID, to user: UserID) throws(StoreError) -> [RecordingGrant] {
    try base.grants(of: recording, to: user)
  }
  func people(of recording: RecordingID) throws(StoreError) -> [RecordedPerson] { try base.people(of: recording) }
  func trackKeys(of recording: RecordingID) throws(StoreError) -> [TrackKeys] { try base.trackKeys(of: recording) }
  func notes(of recording: RecordingID, from number: UInt32, limit: Int) throws(StoreError) -> [RecordingNote] {
    try base.notes(of: recording, from: number, limit: limit)
  }
  func readers(of recording: RecordingID) throws(StoreError) -> [StoredReader] { try base.readers(of: recording) }
  func unopened(from author: UserID, by user: UserID) throws(StoreError) -> Int {
    try base.unopened(from: author, by: user)
  }
  func alerts() throws(StoreError) -> [StoredAlert] { try base.alerts() }
  func witnesses(of recording: RecordingID) throws(StoreError) -> [ReelWitness] { try base.witnesses(of: recording) }
  func recordings(of user: UserID?, _ wanted: RecordingFilter) throws(StoreError) -> [StoredRecording] {
    try base.recordings(of: user, wanted)
  }
  func segments(
    of recording: RecordingID, reel: UInt32, from: UInt32, limit: Int
  ) throws(StoreError) -> [StoredSegment] {
    try base.segments(of: recording, reel: reel, from: from, limit: limit)
  }
  func recordings(expiredAt time: Timestamp, limit: Int) throws(StoreError) -> [RecordingID] {
    try base.recordings(expiredAt: time, limit: limit)
  }
}

/// A monotonic clock that a test sets.
final class TestClock: Sendable {
  private let time = Mutex(Instant(nanoseconds: 0))

  var now: Instant { time.withLock { $0 } }
  func advance(by duration: Duration) { time.withLock { $0 = $0.advanced(by: duration) } }
}

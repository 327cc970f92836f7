package import Contract
package import MediaModel
package import Recording

/// Identifies a start of a server: a later start has a larger token. Each batch carries the token of the start that made it. The store refuses a batch
/// after a later start has loaded the state, so a server that was replaced and does not know it cannot overwrite what its successor wrote.
package struct FencingToken: Hashable, Sendable, Comparable {
  package let number: UInt32

  package init(number: UInt32) { self.number = number }

  package static func < (one: FencingToken, other: FencingToken) -> Bool { one.number < other.number }
}

/// The state that survives a restart, history and abuse reports (rule 11 of protocol section 4, and section 8).
///
/// `write` and `checkpoint` return at once. All other operations block the calling thread until the store has answered, so they are not called on an event loop.
package protocol Storage: Sendable {
  /// Where it is, for the log: a path, or hosts and a database.
  var place: String { get }

  // MARK: the state

  /// The state that the last run left, with the token of this start (`Stored.token`): batches of earlier starts are refused from now on. Calls that ended
  /// too long ago are left out.
  func load(now: Timestamp) throws(StoreError) -> Stored

  /// Writes all changes or none, after all earlier ones. Each change may be written twice. Returns at once.
  /// - Parameters:
  ///   - token: of the start that made the changes. If a later start has loaded the state, nothing is written and the error is `.fenced`.
  ///   - done: called on a thread of the store with nil, or with the reason why the changes could not be written. The store may take longer
  ///     than the caller is willing to wait.
  func write(
    _ changes: [StoreChange], as token: FencingToken, done: @escaping @Sendable (StoreError?) -> Void)

  /// Deletes everything stored about the user, also from another process than the server's. Only the server may end the membership in a running call.
  func forget(_ user: UserID) throws(StoreError)

  /// Users whom another process has deleted, for the server that owns the state: `.forgotten` settles each. A store may name each once, or until it is settled.
  func takeForgotten() throws(StoreError) -> [UserID]

  /// Moves what was written to where it stays, for a store that needs to be told. Called each second or so; returns at once.
  /// - Parameter failed: called on a thread of the store.
  func checkpoint(failed: @escaping @Sendable (StoreError) -> Void)

  /// The condition of the store's server; nil for a store in a file.
  /// - Parameter now: the machine's time, read several times.
  func condition(now: @Sendable () -> Timestamp) throws(StoreError) -> StoreCondition?

  /// One step of deleting expired history; time spent together is added to the totals. Returns whether there is more to do.
  func sweep(now: Timestamp, historyDays: Int) throws(StoreError) -> Bool

  // MARK: history (protocol section 8)

  /// `history/list`: newest first. A call whose outcome is open is not history yet.
  func list(
    of user: UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>, now: Timestamp
  ) throws(StoreError) -> HistoryList

  /// `history/delete`: only from this user's list. Totals stay.
  /// - Parameter calls: nil for all.
  func delete(of user: UserID, calls: [CallID]?) throws(StoreError)

  /// `history/totals`: the time that both were in the same call. A call counts however short that was, even within one millisecond.
  func totals(of user: UserID, with other: UserID, now: Timestamp) throws(StoreError) -> Totals

  /// The users of `others` who have a call, or history, in common with the user (protocol section 7).
  func acquainted(_ user: UserID, with others: [UserID]) throws(StoreError) -> Set<UserID>

  // MARK: abuse reports, which the operator reads

  /// Newest first.
  /// - Parameters:
  ///   - since: older ones are omitted.
  ///   - limit: the most to return.
  func reports(since: Timestamp, limit: Int) throws(StoreError) -> (reports: [StoredReport], total: Int)

  /// nil if there is none with this id.
  func report(_ id: ReportID) throws(StoreError) -> StoredReport?

  // MARK: recordings (protocol section 13)

  /// The recordings that run, and what each user owns.
  func recordings() throws(StoreError) -> StoredRecordings

  /// nil if there is none with this id.
  func recording(_ id: RecordingID) throws(StoreError) -> StoredRecording?

  /// nil if there is no such recording.
  func record(of recording: RecordingID) throws(StoreError) -> RecordingRecord?

  /// The grants to the user's devices and reading key.
  func grants(of recording: RecordingID, to user: UserID) throws(StoreError) -> [RecordingGrant]

  /// From a number on, in their order.
  func notes(of recording: RecordingID, from number: UInt32, limit: Int) throws(StoreError) -> [RecordingNote]

  /// The newest of each reel.
  func witnesses(of recording: RecordingID) throws(StoreError) -> [ReelWitness]

  /// The people of a call's reels.
  func people(of recording: RecordingID) throws(StoreError) -> [RecordedPerson]

  /// The keys of a call's tracks.
  func trackKeys(of recording: RecordingID) throws(StoreError) -> [TrackKeys]

  /// The users with a grant of the recording, or alerted of it, by their ids.
  func readers(of recording: RecordingID) throws(StoreError) -> [StoredReader]

  /// How many recordings `author` has granted to the user that the user has not opened. That of a running call opens later, and does not count.
  func unopened(from author: UserID, by user: UserID) throws(StoreError) -> Int

  /// The alerts that have not reached their users, the oldest first.
  func alerts() throws(StoreError) -> [StoredAlert]

  /// The recordings that the user owns, or has a grant of, newest first.
  /// - Parameter user: nil for all recordings, whatever the role.
  func recordings(of user: UserID?, _ wanted: RecordingFilter) throws(StoreError) -> [StoredRecording]

  /// The segments of a reel from a number on, in their order.
  func segments(
    of recording: RecordingID, reel: UInt32, from: UInt32, limit: Int
  ) throws(StoreError) -> [StoredSegment]

  /// The recordings that expire at this time or earlier, the earliest first.
  func recordings(expiredAt time: Timestamp, limit: Int) throws(StoreError) -> [RecordingID]
}

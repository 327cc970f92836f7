import CallMessages
import Contract
import Dispatch
import Logging
import MediaModel
import Listening
import Synchronization

/// Answers history queries from the disk, on a separate queue: a long history delays no call, and many queries use no more than one thread.
final class Archive: Sendable {
  /// The most answers under way; a further query is told to retry.
  static let maximumWaiting = 256
  private let store: any Storage
  private let clock: WallClock
  private let log: LimitedLog
  private let queue = DispatchQueue(label: "conclave.archive")
  /// Answers that are under way.
  private let waiting = Mutex(0)

  init(store: any Storage, clock: WallClock, log: LimitedLog) {
    self.store = store
    self.clock = clock
    self.log = log
  }

  func answer(_ query: HistoryQuery, done: @escaping @Sendable (CallMessages.Reply) -> Void) {
    let isTaken = take { done(self.reply(to: query)) }
    guard !isTaken else { return }
    done(
      .failed(
        RequestError(.serverBusy, "too many ask for their history: try again in a moment", retryAfterMs: 1_000)))
  }

  /// The users of `others` with whom the user has history in common; none if that cannot be read.
  func acquainted(_ user: UserID, with others: [UserID], done: @escaping @Sendable (Set<UserID>) -> Void) {
    let isTaken = take {
      do {
        done(try self.store.acquainted(user, with: others))
      } catch {
        self.report(error)
        done([])
      }
    }
    if !isTaken { done([]) }
  }

  /// Abuse reports for the operator, as `Storage.reports`.
  /// - Throws: `AdminFailure`, also if too many queries are under way.
  func reports(since: Timestamp, limit: Int) async throws(AdminFailure) -> (reports: [StoredReport], total: Int) {
    try await read { store throws(StoreError) in try store.reports(since: since, limit: limit) }
  }

  /// - Throws: as `reports`.
  func report(_ id: ReportID) async throws(AdminFailure) -> StoredReport? {
    try await read { store throws(StoreError) in try store.report(id) }
  }

  private func read<Value: Sendable>(
    _ body: @escaping @Sendable (any Storage) throws(StoreError) -> Value
  ) async throws(AdminFailure) -> Value {
    let result = await withCheckedContinuation { (done: CheckedContinuation<Result<Value, AdminFailure>, Never>) in
      let isTaken = take {
        do throws(StoreError) {
          done.resume(returning: .success(try body(self.store)))
        } catch {
          done.resume(returning: .failure(AdminFailure(error: error.description)))
        }
      }
      if !isTaken { done.resume(returning: .failure(AdminFailure(error: "too many ask for the history: try again"))) }
    }
    return try result.get()
  }

  /// Returns false if there is no room.
  private func take(_ work: @escaping @Sendable () -> Void) -> Bool {
    let hasRoom = waiting.withLock { waiting in
      guard waiting < Self.maximumWaiting else { return false }
      waiting += 1
      return true
    }
    guard hasRoom else { return false }
    queue.async {
      work()
      self.waiting.withLock { $0 -= 1 }
    }
    return true
  }

  private func reply(to query: HistoryQuery) -> CallMessages.Reply {
    do {
      switch query {
      case .list(let user, let before, let limit, let rejoinable):
        return .ok(
          .history(
            try store.list(of: user, before: before, limit: limit, rejoinable: rejoinable, now: clock.now())))
      case .delete(let user, let calls):
        try store.delete(of: user, calls: calls)
        return .ok(.nothing)
      case .totals(let user, let other): return .ok(.totals(try store.totals(of: user, with: other, now: clock.now())))
      }
    } catch {
      report(error)
      return .failed(RequestError(.serverBusy, "the history is out of reach: try again later", retryAfterMs: 5_000))
    }
  }

  private func report(_ error: any Error) {
    log.log(.history, .error, "the history cannot be read or changed", ["reason": "\(error)"])
  }
}

import Calls
import Contract
import Logging
import MediaModel
import Persistence

/// What is answered from the disk, beside the calls: a long history holds none of them up.
struct Archive: Sendable {
  let store: Store
  let clock: WallClock
  let logger: Logger

  func answer(_ query: HistoryQuery, done: @escaping @Sendable (Calls.Reply) -> Void) {
    Task.detached { done(reply(to: query)) }
  }

  private func reply(to query: HistoryQuery) -> Calls.Reply {
    do {
      switch query {
      case .list(let user, let before, let limit, let rejoinable):
        return .ok(
          try store.list(of: user, before: before, limit: limit, rejoinable: rejoinable, now: clock.now()))
      case .delete(let user, let calls):
        try store.delete(of: user, calls: calls)
        return .ok(NoBody())
      case .totals(let user, let other): return .ok(try store.totals(of: user, with: other, now: clock.now()))
      }
    } catch {
      logger.error("the history cannot be read or changed", metadata: ["reason": "\(error)"])
      return .failed(RequestError(.serverBusy, "the history is out of reach: try again later", retryAfterMs: 5_000))
    }
  }

  /// Those of `others` with whom the user has history in common; nobody when that cannot be read.
  func acquainted(_ user: UserID, with others: [UserID], done: @escaping @Sendable (Set<UserID>) -> Void) {
    Task.detached { done((try? store.acquainted(user, with: others)) ?? []) }
  }
}

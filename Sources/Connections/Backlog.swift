package import CallMessages
import Listening
package import MediaModel
import NIOCore
import Synchronization

/// The bytes that wait for slow readers, over all connections. Above the bound the connection with the most is cut off, then the next.
///
/// ## Overview
/// A connection reports its bytes in steps (`step`), and 0 when it has read nearly all. Bytes below a step are not counted. Unread replies, events
/// and messages count alike.
package struct Backlog: Sendable {
  struct Limits: Sendable {
    /// Bytes of all connections.
    var bytes: Int
    /// Bytes of the connections of one user.
    var bytesOfUser: Int
  }

  package static let step = Listeners.unsentStep

  private struct Entry {
    let user: UserID?
    var bytes: Int
  }

  var limits: Limits
  private var entries: [SessionID: Entry] = [:]
  private var users: [UserID: Int] = [:]
  private(set) var bytes = 0

  init(limits: Limits) { self.limits = limits }

  /// How many users and connections it knows.
  var counts: (users: Int, connections: Int) { (users.count, entries.count) }

  /// Sets how many bytes wait for the session. `user` is nil for services, which have no separate bound.
  /// - Returns: the sessions to cut off; they are forgotten here.
  mutating func report(_ session: SessionID, of user: UserID?, bytes: Int) -> [(SessionID, SignalingStatistics.Ending)]
  {
    set(session, user, bytes)
    var cut: [(SessionID, SignalingStatistics.Ending)] = []
    if let user {
      while users[user, default: 0] > limits.bytesOfUser, let slowest = slowest(of: user) {
        set(slowest, user, 0)
        cut.append((slowest, .userBacklogFull))
      }
    }
    while self.bytes > limits.bytes, let slowest = slowest(of: nil) {
      set(slowest, entries[slowest]?.user, 0)
      cut.append((slowest, .backlogFull))
    }
    return cut
  }

  private mutating func set(_ session: SessionID, _ user: UserID?, _ count: Int) {
    let old = entries[session]
    let user = old == nil ? user : old?.user
    let difference = count - (old?.bytes ?? 0)
    entries[session] = count > 0 ? Entry(user: user, bytes: count) : nil
    bytes += difference
    guard let user else { return }
    let total = users[user, default: 0] + difference
    users[user] = total > 0 ? total : nil
  }

  /// The connection with the most waiting bytes, among all or one user's. There are at most `limits.bytes / step` entries; cutting one off frees at least
  /// their average.
  private func slowest(of user: UserID?) -> SessionID? {
    entries.max { one, other in
      let (first, second) = (weight(one.value, of: user), weight(other.value, of: user))
      return first == second ? one.key.rawValue < other.key.rawValue : first < second
    }?.key
  }

  private func weight(_ entry: Entry, of user: UserID?) -> Int { user == nil || entry.user == user ? entry.bytes : -1 }
}

/// The `Backlog` of the server's connections.
package final class SlowReaders: Sendable {
  private struct State: Sendable {
    var backlog: Backlog
    var entries: [SessionID: ConnectionTable.Entry] = [:]
  }

  private let state: Mutex<State>

  init(limits: Backlog.Limits) { state = Mutex(State(backlog: Backlog(limits: limits))) }

  func setLimits(_ limits: Backlog.Limits) { state.withLock { $0.backlog.limits = limits } }

  /// Bytes that wait for connections that read slowly.
  var bytes: Int { state.withLock { $0.backlog.bytes } }

  /// Sets how many bytes wait for a connection's client.
  package func report(_ session: SessionID, of user: UserID?, bytes: Int, _ entry: ConnectionTable.Entry) {
    let cut = state.withLock { state in
      state.entries[session] = bytes > 0 ? entry : nil
      return state.backlog.report(session, of: user, bytes: bytes).compactMap { session, ending in
        state.entries.removeValue(forKey: session).map { ($0, ending) }
      }
    }
    for (entry, ending) in cut { entry.loop.execute { entry.connection.value.cutOff(ending) } }
  }
}

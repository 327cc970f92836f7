import Calls
import MediaModel
import NIOCore
import Synchronization

/// The `Backlog` of the server's connections.
final class SlowReaders: Sendable {
  private struct State: Sendable {
    var backlog: Backlog
    var entries: [SessionID: ConnectionTable.Entry] = [:]
  }

  private let state: Mutex<State>

  init(limits: Backlog.Limits) { state = Mutex(State(backlog: Backlog(limits: limits))) }

  /// Bytes that wait, of connections that read slowly.
  var bytes: Int { state.withLock { $0.backlog.bytes } }

  /// So many bytes wait for a connection's client.
  func report(_ session: SessionID, of user: UserID?, bytes: Int, _ entry: ConnectionTable.Entry) {
    let cut = state.withLock { state in
      state.entries[session] = bytes > 0 ? entry : nil
      return state.backlog.report(session, of: user, bytes: bytes).compactMap { session, ending in
        state.entries.removeValue(forKey: session).map { ($0, ending) }
      }
    }
    for (entry, ending) in cut { entry.loop.execute { entry.handler.value.cutOff(ending) } }
  }
}

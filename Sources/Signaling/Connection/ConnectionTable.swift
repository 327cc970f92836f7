import Calls
import MediaModel
import NIOCore
import Synchronization

/// The STOMP connections by session, so that deliveries find their event loop.
final class ConnectionTable: Sendable {
  struct Entry: Sendable {
    let loop: any EventLoop
    let handler: NIOLoopBound<ConnectionHandler>
    /// The share of the logged-in user; nil before, and for services.
    var share: UserShare? = nil
  }

  private let entries = Mutex<[SessionID: Entry]>([:])

  func insert(_ entry: Entry, for session: SessionID) { entries.withLock { $0[session] = entry } }

  func logIn(_ session: SessionID, _ share: UserShare?) { entries.withLock { $0[session]?.share = share } }

  func remove(_ session: SessionID) { entries.withLock { _ = $0.removeValue(forKey: session) } }

  func entry(_ session: SessionID) -> Entry? { entries.withLock { $0[session] } }

  var all: [Entry] { entries.withLock { Array($0.values) } }
}

/// Ids for sessions, never reused.
final class SessionNumbers: Sendable {
  private let incarnation: Incarnation
  private let last = Atomic<UInt64>(0)

  init(of incarnation: Incarnation) { self.incarnation = incarnation }

  func next() -> SessionID { SessionID(last.wrappingAdd(1, ordering: .relaxed).newValue, of: incarnation) }
}

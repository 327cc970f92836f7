package import CallMessages
package import MediaModel
package import NIOCore
import Synchronization

/// The connections of all fronts by session, so that deliveries find their event loop.
package final class ConnectionTable: Sendable {
  package struct Entry: Sendable {
    let loop: any EventLoop
    let connection: NIOLoopBound<any ClientConnection>
    /// The share of the logged-in user; nil before, and for services.
    var share: UserShare?

    /// Call it on the connection's loop.
    package init(_ connection: any ClientConnection, on loop: any EventLoop) {
      self.loop = loop
      self.connection = NIOLoopBound(connection, eventLoop: loop)
    }
  }

  private let entries = Mutex<[SessionID: Entry]>([:])

  package func insert(_ entry: Entry, for session: SessionID) { entries.withLock { $0[session] = entry } }

  package func logIn(_ session: SessionID, _ share: UserShare?) { entries.withLock { $0[session]?.share = share } }

  package func remove(_ session: SessionID) { entries.withLock { _ = $0.removeValue(forKey: session) } }

  func entry(_ session: SessionID) -> Entry? { entries.withLock { $0[session] } }

  var all: [Entry] { entries.withLock { Array($0.values) } }
}

/// Ids for sessions, never reused.
package final class SessionNumbers: Sendable {
  private let incarnation: Incarnation
  private let last = Atomic<UInt64>(0)

  package init(of incarnation: Incarnation) { self.incarnation = incarnation }

  package func next() -> SessionID { SessionID(last.wrappingAdd(1, ordering: .relaxed).newValue, of: incarnation) }
}

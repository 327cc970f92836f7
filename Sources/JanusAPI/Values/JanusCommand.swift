/// The client that sent something, and gets the answer.
package enum Requester: Hashable, Sendable {
  /// A WebSocket, by a number that is never reused.
  case socket(UInt64)
  /// One HTTP request, likewise. It gets one answer.
  case exchange(UInt64)
}

/// How a WebSocket ended.
package enum SocketEnding: Sendable, Hashable {
  /// It sent a close frame: its sessions end.
  case closed
  /// Its sessions may be claimed for a while.
  case broken
}

package struct JanusRequest: Sendable, Hashable {
  /// The place of an HTTP request; a WebSocket's requests name session and handle themselves.
  package enum Path: Sendable, Hashable { case root, session(UInt64), handle(UInt64, UInt64) }

  package var from: Requester
  package var path: Path?
  package var value: JSONTree
  package var grant: Grant

  package init(from: Requester, path: Path? = nil, value: JSONTree, grant: Grant = Grant()) {
    self.from = from
    self.path = path
    self.value = value
    self.grant = grant
  }
}

package enum JanusCommand: Sendable {
  case request(JanusRequest)
  /// A message that is not JSON.
  case unreadable(Requester, reason: String)
  /// A long poll for a session's events.
  /// - maximum: at most so many at once, as a list; nil for a single one.
  case poll(exchange: UInt64, session: UInt64, maximum: Int?, Grant)
  case socketEnded(UInt64, SocketEnding)
  /// The client of an HTTP request is gone.
  case exchangeEnded(UInt64)
  case result(number: UInt64, RoomMediaResult)
  case media(RoomMediaEvent)
  /// For an operator.
  case endRoom(PluginID)
  /// No new sessions from now on, and empty rooms end.
  case drain
  case timeout
}

package enum JanusEffect: Sendable, Hashable {
  case send(Requester, JSONTree)
  case media(RoomMedia)
}

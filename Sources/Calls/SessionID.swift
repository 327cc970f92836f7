/// One STOMP connection, for as long as it lasts; the signaling server never uses a number twice.
package struct SessionID: Hashable, Sendable {
  package var rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}

package import Listening

/// One client's connection, whatever its front speaks. All of it is called on the connection's event loop.
package protocol ClientConnection: AnyObject {
  /// Writes something that `send` or `sendSoon` then sends.
  func deliver(_ outgoing: Outgoing)

  func send()

  /// Sends within a moment, together with what follows.
  func sendSoon()

  /// Tells the client why, in words for people, and closes; `send` follows.
  func close(reason: String)

  /// Closes at once: so much waits for the client that nothing would arrive.
  func cutOff(_ ending: SignalingStatistics.Ending)
}

import Logging
import MediaModel
import NIOCore

/// What all connections of a server share.
struct Services: Sendable {
  let configuration: SignalingServer.Configuration
  let authenticator: any Authenticator
  let sink: any SignalingSink
  let pages: @Sendable (HTTPRequest) async -> HTTPResponse
  /// The wall clock, which tokens' ends are told in.
  let clock: @Sendable () -> Timestamp
  let logger: Logger
  let counters = Counters()
  let connections = ConnectionTable()
  let sessionIDs = SessionNumbers()
}

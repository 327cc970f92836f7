import STOMP

extension SignalingServer {
  /// Limits of a connection, an address, a user, and of all together (protocol sections 1, 2 and 10), in counts and bytes. The operator's `limits` have the same names.
  /// Services have no limits per user.
  package struct Limits: Sendable {
    package var connections = 20_000
    /// The connections from one address (an IPv6 /64), logged in or not. It does not apply to `proxies`.
    package var addressConnections = 10_000
    package var addressConnectionsBeforeLogin = 500
    /// HTTP requests for pages from one address; the blocks of IPv6 count as in `AddressRates`. It does not apply to `proxies`.
    package var addressRequestsPerSecond = 100
    package var addressRequestBurst = 2_000

    /// All devices of a user together.
    package var userConnections = 64
    package var userSubscriptions = 512
    package var userRequestsPerSecond = 300
    package var userRequestBurst = 1_000
    /// Bytes of events that follow from a user's requests, in one second.
    package var userEvents = 1 << 20
    package var userEventBurst = 16 << 20
    /// Bytes that may wait for a user's clients.
    package var userOutbound = 16 << 20
    /// Bytes of frames that are not complete or wait for the COMMIT of their transaction.
    package var userInbound = 16 << 20
    /// Bytes that may wait for all clients together.
    package var totalOutbound = 256 << 20

    package var headers = FrameLimits().headers
    /// Bytes.
    package var headerLine = FrameLimits().headerLine
    package var body = 256 << 10
    package var keysBody = 1 << 20
    /// Bodies of HTTP requests.
    package var httpBody = 16 << 10
    /// The time to connect and log in.
    package var connectTime = Duration.nanoseconds(Session.Configuration().connectTimeout)
    package var subscriptions = Session.Configuration().subscriptions
    package var transactions = Session.Configuration().transactions
    package var framesInTransaction = Session.Configuration().framesInTransaction
    package var requestsPerSecond = 50
    package var requestBurst = 100
    /// An app's own messages per connection; a connection that sends more is read more slowly.
    package var messagesPerSecond = 2_000
    package var messageBurst = 4_000
    /// Bytes that may wait for a client that does not read.
    package var outbound = 4 << 20

    package init() {}
  }
}

extension SignalingServer.Limits {
  package var connectSeconds: Int {
    get { Int(connectTime.components.seconds) }
    set { connectTime = .seconds(newValue) }
  }

  var admission: AdmissionTable.Limits {
    AdmissionTable.Limits(
      connections: connections, fromAddress: addressConnections, fromAddressBeforeLogin: addressConnectionsBeforeLogin)
  }

  var userShare: UserShare.Limits {
    UserShare.Limits(
      connections: userConnections, subscriptions: userSubscriptions, requestsPerSecond: userRequestsPerSecond,
      requestBurst: userRequestBurst, inboundBytes: userInbound, eventBytesPerSecond: userEvents,
      eventBurst: userEventBurst)
  }

  var backlog: Backlog.Limits { Backlog.Limits(bytes: totalOutbound, bytesOfUser: userOutbound) }

  var frame: FrameLimits {
    var limits = FrameLimits()
    limits.headers = headers
    limits.headerLine = headerLine
    limits.body = max(body, keysBody)
    return limits
  }

  var frameBeforeLogin: FrameLimits {
    var limits = FrameLimits.beforeLogin
    limits.headers = headers
    limits.headerLine = headerLine
    return limits
  }

  /// A WebSocket message: one frame of the largest kind fits.
  var messageBytes: Int { frame.head + frame.body + 1_024 }
}

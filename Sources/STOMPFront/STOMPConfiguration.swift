import MediaModel
import STOMP

/// Addresses, times and limits of STOMP. The defaults are the protocol's (sections 1, 2 and 10).
package struct STOMPConfiguration: Sendable {
  /// Addresses of the TCP ports; nil is the listeners' common one.
  package var host: String?
  package var tlsHost: String?
  /// 0 lets the system choose; nil opens no port without TLS.
  package var port: Int? = 61_613
  /// Open if there is a certificate.
  package var tlsPort = 61_614

  /// The server's name in CONNECTED.
  package var serverName = "conclave"
  /// The interval that the server offers and requests, in milliseconds.
  package var heartBeatMilliseconds = Session.Configuration().heartBeat.sends
  /// How often queues are checked for expired messages.
  package var choreInterval = Duration.seconds(5)
  /// Prefixes of an app's own destinations: `/topic/…`, `/queue/…`, `/exchange/…`. None by default.
  package var destinations: [String] = []

  package var limits = STOMPLimits()

  package init() {}

  var session: Session.Configuration {
    var session = Session.Configuration()
    session.heartBeat = HeartBeat(sends: heartBeatMilliseconds, wants: heartBeatMilliseconds)
    session.connectTimeout = UInt64(max(0, limits.connectTime.nanoseconds))
    session.subscriptions = limits.subscriptions
    session.transactions = limits.transactions
    session.framesInTransaction = limits.framesInTransaction
    return session
  }
}

/// Limits of a STOMP connection (protocol section 10), in counts and bytes. The operator's `limits` have the same names.
package struct STOMPLimits: Sendable {
  package var headers = FrameLimits().headers
  /// Bytes.
  package var headerLine = FrameLimits().headerLine
  package var body = 256 << 10
  package var keysBody = 1 << 20
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

extension STOMPLimits {
  package var connectSeconds: Int {
    get { Int(connectTime.components.seconds) }
    set { connectTime = .seconds(newValue) }
  }

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

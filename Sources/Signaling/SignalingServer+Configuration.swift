import MediaModel
import STOMP

extension SignalingServer {
  /// Addresses, times, and the limits. The defaults are the protocol's (sections 1, 2 and 10).
  package struct Configuration: Sendable {
    /// PEM files.
    package struct TLS: Sendable, Hashable {
      package var certificateChain: String
      package var privateKey: String

      package init(certificateChain: String, privateKey: String) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
      }
    }

    /// The address on which to listen; nil for all of them, IPv4 and IPv6.
    package var host: String?
    /// Addresses of single listeners; nil is `host`.
    package var stompHost: String?
    package var stompTLSHost: String?
    package var httpHost: String?
    /// Ports; 0 lets the system choose. The STOMP port without TLS is optional.
    package var stompPort: Int? = 61_613
    package var stompTLSPort = 61_614
    package var httpPort = 8_080
    package var tls: TLS?
    /// Whether the HTTP port speaks TLS if there is a certificate.
    package var httpUsesTLS = true

    /// The server's name in CONNECTED.
    package var serverName = "conclave"
    package var origins = OriginPolicy.sameHost(also: [])
    /// The interval that the server offers and requests, in milliseconds.
    package var heartBeatMilliseconds = Session.Configuration().heartBeat.sends
    /// How long after an ERROR the connection is kept, so that the ERROR arrives.
    package var linger = Duration.seconds(5)
    /// How long an HTTP client may take for a request, or between two.
    package var httpTimeout = Duration.seconds(15)

    /// How often queues are checked for expired messages, and the certificate's files for a change.
    package var choreInterval = Duration.seconds(5)

    package var limits = Limits()
    /// Addresses that many users share: reverse proxies.
    package var proxies = AddressList.loopback
    /// How long nothing is accepted when the system has no file for another connection.
    package var acceptPause = Duration.milliseconds(100)
    /// Prefixes of an app's own destinations: `/topic/…`, `/queue/…`, `/exchange/…`. None by default.
    package var destinations: [String] = []

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
}

import MediaModel
import STOMP

extension SignalingServer {
  /// Addresses, limits and times. The defaults are the protocol's (sections 1, 2 and 10).
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
    package var heartBeatMilliseconds = 10_000
    package var connectTimeout = Duration.seconds(10)
    /// How long after an ERROR the connection is kept, so that the ERROR arrives.
    package var linger = Duration.seconds(5)
    /// How long an HTTP client may take for a request, or between two.
    package var httpTimeout = Duration.seconds(15)

    /// How often queues are checked for expired messages, and the certificate's files for a change.
    package var choreInterval = Duration.seconds(5)

    package var maximumConnections = 20_000
    /// The limit for one address (an IPv6 /64), logged in or not. It does not apply to `proxies`.
    package var connectionsFromAddress = 10_000
    package var connectionsFromAddressBeforeLogin = 500
    /// HTTP requests for pages from one address; the blocks of IPv6 count as in `AddressRates`. It does not apply to `proxies`.
    package var requestsFromAddressPerSecond = 100
    package var requestBurstFromAddress = 2_000
    /// Addresses that many users share: reverse proxies.
    package var proxies = AddressList.loopback
    /// The limit for one user, all devices together. Services have no limits per user.
    package var connectionsOfUser = 64
    package var subscriptionsOfUser = 512
    package var requestsOfUserPerSecond = 300
    package var requestBurstOfUser = 1_000
    /// Bytes of events that follow from a user's requests.
    package var eventBytesOfUserPerSecond = 1 << 20
    package var eventBurstOfUser = 16 << 20
    package var outboundBytesOfUser = 16 << 20
    /// Bytes of frames that are not complete or wait for the COMMIT of their transaction.
    package var inboundBytesOfUser = 16 << 20
    /// Bytes that may wait for all clients together.
    package var outboundBytesOfAll = 256 << 20
    /// How long nothing is accepted when the system has no file for another connection.
    package var acceptPause = Duration.milliseconds(100)
    /// Bytes.
    package var requestBody = 256 << 10
    package var keysBody = 1 << 20
    package var httpBody = 16 << 10
    /// Bytes that may wait for a client that does not read.
    package var outboundBytes = 4 << 20
    package var headers = 64
    package var headerLine = 8 << 10
    package var subscriptions = 64
    package var transactions = 8
    package var framesInTransaction = 100
    package var requestsPerSecond = 50
    package var requestBurst = 100
    /// Prefixes of an app's own destinations: `/topic/…`, `/queue/…`, `/exchange/…`. None by default.
    package var destinations: [String] = []
    /// An app's own messages per connection; a connection that sends more is read more slowly.
    package var messagesPerSecond = 2_000
    package var messageBurst = 4_000

    package init() {}

    var admission: AdmissionTable.Limits {
      AdmissionTable.Limits(
        connections: maximumConnections, fromAddress: connectionsFromAddress,
        fromAddressBeforeLogin: connectionsFromAddressBeforeLogin)
    }

    var userShare: UserShare.Limits {
      UserShare.Limits(
        connections: connectionsOfUser, subscriptions: subscriptionsOfUser, requestsPerSecond: requestsOfUserPerSecond,
        requestBurst: requestBurstOfUser, inboundBytes: inboundBytesOfUser,
        eventBytesPerSecond: eventBytesOfUserPerSecond, eventBurst: eventBurstOfUser)
    }

    var backlog: Backlog.Limits {
      Backlog.Limits(bytes: outboundBytesOfAll, bytesOfUser: outboundBytesOfUser)
    }

    var frameLimits: FrameLimits {
      var limits = FrameLimits()
      limits.headers = headers
      limits.headerLine = headerLine
      limits.body = max(requestBody, keysBody)
      return limits
    }

    var limitsBeforeLogin: FrameLimits {
      var limits = FrameLimits.beforeLogin
      limits.headers = headers
      limits.headerLine = headerLine
      return limits
    }

    /// A WebSocket message: one frame of the largest kind fits.
    var messageBytes: Int { frameLimits.head + frameLimits.body + 1_024 }

    var session: Session.Configuration {
      var session = Session.Configuration()
      session.heartBeat = HeartBeat(sends: heartBeatMilliseconds, wants: heartBeatMilliseconds)
      session.connectTimeout = UInt64(max(0, connectTimeout.nanoseconds))
      session.subscriptions = subscriptions
      session.transactions = transactions
      session.framesInTransaction = framesInTransaction
      return session
    }
  }
}

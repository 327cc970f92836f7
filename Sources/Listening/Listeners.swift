import Glibc
package import Logging
package import MediaModel
package import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// The server's ports, and what their connections share: TLS, limits, counts, and log lines that strangers can cause.
///
/// ## Overview
/// It knows no protocol above HTTP and WebSocket. A front registers the TCP ports that it has to itself, and the paths and subprotocols of its WebSockets; behind
/// those its own handlers read and write. Everything else on the HTTP port is a `Route`.
package final class Listeners: Sendable {
  /// The sockets that are open, and the work that ends with them.
  private struct Ports: Sendable {
    var listeners: [any Channel] = []
    var chores: RepeatedTask?
  }

  package let logger: Logger
  /// For log lines that strangers can cause.
  package let log: LimitedLog
  package let counters = SignalingCounters()
  /// The wall clock in which certificates and tokens expire.
  package let clock: @Sendable () -> Timestamp
  let admission: ConnectionAdmission
  let requestRates: RequestRates
  private let group: any EventLoopGroup
  private let current: Mutex<ListeningConfiguration>
  private let certificates = Mutex<Certificates?>(nil)
  private let ports = Mutex(Ports())

  package init(
    _ configuration: ListeningConfiguration, group: any EventLoopGroup, logger: Logger,
    clock: @escaping @Sendable () -> Timestamp
  ) {
    current = Mutex(configuration)
    self.group = group
    self.logger = logger
    self.clock = clock
    log = LimitedLog(logger)
    admission = ConnectionAdmission(
      limits: configuration.limits.admission, proxies: configuration.proxies, counters: counters)
    requestRates = RequestRates(
      perSecond: configuration.limits.addressRequestsPerSecond, burst: configuration.limits.addressRequestBurst,
      proxies: configuration.proxies)
  }

  package var configuration: ListeningConfiguration { current.withLock { $0 } }

  /// Counts since the start, and gauges of open connections.
  package var statistics: SignalingStatistics {
    var statistics = counters.snapshot
    statistics.certificateExpiry = certificates.withLock { $0 }?.expiry
    return statistics
  }

  /// The client of this connection has logged in, so no other connection takes its place. False if it was evicted meanwhile.
  package func logIn(_ channel: any Channel) -> Bool { admission.logIn(channel) }

  /// Opens the HTTP port, and the ports that fronts have to themselves. Call it once.
  /// - Returns: the port numbers that are really bound, those of `tcp` and `others` in their order.
  /// - Throws: `ListenError`. Nothing is left open then.
  package func open(
    webSockets: [WebSocketEndpoint], tcp: [TCPEndpoint], routes: [Route], others: [HTTPEndpoint] = []
  ) async throws -> (http: Int, tcp: [Int], others: [Int]) {
    let configuration = configuration
    let files = configuration.tls
    let tls = try files.map { files in
      do { return try Certificates(files, logger: logger) } catch { throw ListenError(error, files) }
    }
    certificates.withLock { $0 = tls }
    do {
      let http = try await open(
        HTTPService(listeners: self, webSockets: webSockets, routes: routes),
        configuration.httpHost ?? configuration.host, port: configuration.httpPort,
        tls: configuration.httpUsesTLS ? tls : nil)
      var numbers: [Int] = []
      for endpoint in tcp { numbers.append(try await open(endpoint, configuration, tls: endpoint.usesTLS ? tls : nil)) }
      var otherNumbers: [Int] = []
      for endpoint in others {
        otherNumbers.append(
          try await open(
            HTTPService(listeners: self, webSockets: endpoint.webSockets, routes: endpoint.routes),
            endpoint.host ?? configuration.host, port: endpoint.port,
            tls: endpoint.usesTLS && configuration.httpUsesTLS ? tls : nil))
      }
      let chores = tls.map { watch($0, every: configuration.choreInterval) }
      ports.withLock { $0.chores = chores }
      return (http, numbers, otherNumbers)
    } catch {
      await close()
      throw error
    }
  }

  /// Applies limits, origins and the certificate's files of another configuration. Ports and addresses stay.
  /// - Throws: `ListenError` if the certificate cannot be used. Nothing has changed then.
  package func use(_ configuration: ListeningConfiguration) throws(ListenError) {
    if let certificates = certificates.withLock({ $0 }), let files = configuration.tls { try certificates.use(files) }
    current.withLock { $0 = configuration }
    admission.setLimits(configuration.limits.admission)
    requestRates.set(
      perSecond: configuration.limits.addressRequestsPerSecond, burst: configuration.limits.addressRequestBurst)
  }

  /// Closes the ports. Open connections stay.
  package func close() async {
    let ports = ports.withLock { exchange(&$0, with: Ports()) }
    ports.chores?.cancel()
    for listener in ports.listeners { try? await listener.close() }
  }

  /// Reads the certificate's files again when they have changed, and warns before it expires.
  private func watch(_ certificates: Certificates, every interval: Duration) -> RepeatedTask {
    let pause = TimeAmount.nanoseconds(interval.nanoseconds)
    return group.next().scheduleRepeatedTask(initialDelay: pause, delay: pause) { [clock] _ in
      // Files are not read on an event loop.
      NIOThreadPool.singleton.submit {
        guard case .active = $0 else { return }
        certificates.reload()
        certificates.watch(now: clock())
      }
    }
  }

  // MARK: Ports

  private func open(_ service: HTTPService, _ host: String?, port: Int, tls: Certificates?) async throws -> Int {
    let bootstrap = bootstrap(tls: tls, for: .http) { channel in try HTTPHandler.add(to: channel, service) }
    return try await bind(bootstrap, host, port: port)
  }

  private func open(_ endpoint: TCPEndpoint, _ configuration: ListeningConfiguration, tls: Certificates?) async throws
    -> Int
  {
    let bootstrap = bootstrap(tls: tls, for: .tcp, pipeline: endpoint.addHandlers)
    // A client may close its half and still read the last answer, and so may we. Under TLS NIOSSL itself answers a client's close_notify, after what we
    // write meanwhile. With half-closure it would leave that to us, and wait 5 s for a close_notify after a FIN.
    return try await bind(
      bootstrap.childChannelOption(.allowRemoteHalfClosure, value: tls == nil), endpoint.host ?? configuration.host,
      port: endpoint.port)
  }

  private func bootstrap(
    tls: Certificates?, for purpose: Certificates.Purpose,
    pipeline: @escaping @Sendable (any Channel) throws -> Void
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1_024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptPause(listeners: self))
        }
      }
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard self.admission.admit(channel) else { throw TooManyConnections() }
          if let tls {
            let handler = NIOSSLServerHandler(context: tls.context(for: purpose))
            try channel.pipeline.syncOperations.addHandlers(handler, HandshakeWatch(listeners: self))
          }
          try pipeline(channel)
        }
      }
      .childChannelOption(.socketOption(.so_keepalive), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      // For clients without heart-beats: a peer that is gone is detected within a minute and a half.
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 60)
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 10)
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      // Unread bytes wait in this process, where they are counted, and not in the kernel.
      .childChannelOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: 128 << 10)
      .childChannelOption(.writeBufferWaterMark, value: .init(low: Self.unsentStep / 2, high: Self.unsentStep))
  }

  /// From so many unsent bytes on a connection is not writable, until half of them are sent. A front counts the bytes that wait for a slow client in such steps.
  package static let unsentStep = 16 << 10

  private func bind(_ bootstrap: ServerBootstrap, _ host: String?, port: Int) async throws -> Int {
    do {
      let listener = try await bind(bootstrap, host: host, port: port)
      ports.withLock { $0.listeners.append(listener) }
      return listener.localAddress?.port ?? 0
    } catch {
      throw ListenError(error, host: host, port: port)
    }
  }

  private func bind(_ bootstrap: ServerBootstrap, host: String?, port: Int) async throws -> any Channel {
    if let host { return try await bootstrap.bind(host: host, port: port).get() }
    do {
      return try await bootstrap.bind(host: "::", port: port).get()
    } catch let error as IOError where error.errnoCode == EAFNOSUPPORT || error.errnoCode == EADDRNOTAVAIL {
      // A machine without IPv6.
      return try await bootstrap.bind(host: "0.0.0.0", port: port).get()
    }
  }
}

private struct TooManyConnections: Error {}

/// Another HTTP port, with the WebSockets and routes of one front.
package struct HTTPEndpoint: Sendable {
  /// The address on which to listen; nil is the configuration's `host`.
  let host: String?
  /// 0 lets the system choose.
  let port: Int
  /// Whether it speaks TLS if the HTTP port does.
  let usesTLS: Bool
  let webSockets: [WebSocketEndpoint]
  let routes: [Route]

  package init(host: String?, port: Int, usesTLS: Bool, webSockets: [WebSocketEndpoint], routes: [Route]) {
    self.host = host
    self.port = port
    self.usesTLS = usesTLS
    self.webSockets = webSockets
    self.routes = routes
  }
}

/// A TCP port that a front has to itself.
package struct TCPEndpoint: Sendable {
  /// The address on which to listen; nil is the configuration's `host`.
  let host: String?
  /// 0 lets the system choose.
  let port: Int
  /// Whether it speaks TLS, with the configuration's certificate.
  let usesTLS: Bool
  /// Adds the front's handlers, which read and write `ByteBuffer`s.
  let addHandlers: @Sendable (any Channel) throws -> Void

  package init(
    host: String?, port: Int, usesTLS: Bool, addHandlers: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.host = host
    self.port = port
    self.usesTLS = usesTLS
    self.addHandlers = addHandlers
  }
}

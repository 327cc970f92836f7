package import enum Calls.Delivery
package import struct Calls.SessionID
package import struct Contract.RequestError
package import Logging
package import MediaModel
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket

/// The signaling server: STOMP over TCP and WebSocket, and a few HTTP routes.
///
/// ## Overview
/// Clients' commands go to the sink, the control plane's answers come by `deliver`. Between them is one `ConnectionHandler` per connection, on an
/// event loop of the caller's group. A client that does not read delays nobody else.
package final class SignalingServer: Sendable {
  private let services: SharedServices
  private let listeners: [any Channel]
  private let chores: RepeatedTask
  private let certificates: Certificates?

  /// The ports that are really bound; 0 and nil for listeners that are not configured.
  package let stompPort: Int
  package let stompTLSPort: Int?
  package let httpPort: Int

  /// Opens all ports.
  /// - Parameters:
  ///   - incarnation: this run of the server, for the ids of sessions.
  ///   - authenticator: verifies tokens.
  ///   - sink: gets the commands of all sessions.
  ///   - clock: the wall clock.
  ///   - pages: answers HTTP requests to any path but the WebSocket's, 404 and 405 included.
  /// - Throws: `ListenError`. Nothing is left open then.
  package static func start(
    _ configuration: Configuration, incarnation: Incarnation, group: any EventLoopGroup,
    authenticator: any Authenticator, sink: any SignalingSink, logger: Logger,
    clock: @escaping @Sendable () -> Timestamp,
    pages: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) async throws -> SignalingServer {
    let services = SharedServices(
      configuration: configuration, incarnation: incarnation, group: group, authenticator: authenticator, sink: sink,
      pages: pages, clock: clock, logger: logger)
    let listening = Listening(services: services, group: group)
    var listeners: [any Channel] = []
    do {
      let tls = try configuration.tls.map { files in
        do { return try Certificates(files, logger: logger) } catch { throw ListenError(error, files) }
      }
      func open(_ listener: any Channel) -> Int {
        listeners.append(listener)
        return listener.localAddress?.port ?? 0
      }
      let http = open(
        try await listening.http(
          configuration.httpHost, port: configuration.httpPort, tls: configuration.httpUsesTLS ? tls : nil))
      var (plain, secured): (Int?, Int?)
      if let port = configuration.stompPort {
        plain = open(try await listening.stomp(configuration.stompHost, port: port, tls: nil))
      }
      if let tls {
        secured = open(
          try await listening.stomp(configuration.stompTLSHost, port: configuration.stompTLSPort, tls: tls))
      }
      return SignalingServer(
        services: services, listeners: listeners, ports: (plain ?? 0, secured, http), certificates: tls,
        chores: chores(services, certificates: tls, on: group.next()))
    } catch {
      for listener in listeners { try? await listener.close() }
      throw error
    }
  }

  /// Periodic work: expiring queues, and checking the certificate's files.
  private static func chores(
    _ services: SharedServices, certificates: Certificates?, on loop: any EventLoop
  ) -> RepeatedTask {
    let pause = TimeAmount.nanoseconds(services.configuration.choreInterval.nanoseconds)
    return loop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { _ in
      let now = NIODeadline.now().uptimeNanoseconds
      services.broker.expire(now: now)
      services.shares.prune(now: now)
      // Files are not read on an event loop.
      guard let certificates else { return }
      NIOThreadPool.singleton.submit {
        guard case .active = $0 else { return }
        certificates.reload()
        certificates.watch(now: services.clock())
      }
    }
  }

  private init(
    services: SharedServices, listeners: [any Channel], ports: (stomp: Int, stompTLS: Int?, http: Int),
    certificates: Certificates?, chores: RepeatedTask
  ) {
    self.certificates = certificates
    self.chores = chores
    self.services = services
    self.listeners = listeners
    (stompPort, stompTLSPort, httpPort) = ports
  }

  /// Counts since the start, and gauges of open connections and sessions.
  package var statistics: SignalingStatistics {
    var statistics = services.counters.snapshot
    statistics.backlogBytes = services.slowReaders.bytes
    statistics.certificateExpiry = certificates?.expiry
    return statistics
  }

  /// Charges the user's share for events caused by what the user's sessions sent, or by their end. Callable from any thread.
  package func charge(_ user: UserID, _ events: EventCharge) {
    services.shares.charge(user, events, now: NIODeadline.now().uptimeNanoseconds)
  }

  /// Why a request of the session that has waited for its turn must not be carried out: its user's earlier ones made the server write too much. nil if it may
  /// be. Callable from any thread.
  package func refusal(_ session: SessionID) -> RequestError? {
    let wait = services.connections.entry(session)?.share?.debt(now: NIODeadline.now().uptimeNanoseconds)
    guard let wait else { return nil }
    services.counters.drop(.userEventsFull)
    return .tooManyRequests(wait)
  }

  /// Writes replies and events to clients, in this order for each, and closes connections. Callable from any thread; overlapping calls have no order.
  /// Deliveries to a session that is gone are dropped and counted.
  package func deliver(_ deliveries: [Delivery]) { services.deliver(deliveries) }

  /// Applies limits, origins and the certificate's files of another configuration. Ports and addresses stay, and open connections keep their own limits.
  /// - Throws: `ListenError` if the certificate cannot be used. Nothing has changed then.
  package func use(_ configuration: Configuration) throws(ListenError) {
    if let certificates, let files = configuration.tls { try certificates.use(files) }
    services.use(configuration)
  }

  /// Closes the ports, and all sessions with an ERROR with this `message`.
  package func stop(message: String = "the server is shutting down") async {
    chores.cancel()
    for listener in listeners { try? await listener.close() }
    for entry in services.connections.all {
      entry.loop.execute {
        entry.handler.value.close(reason: message)
        entry.handler.value.flush()
      }
    }
  }
}

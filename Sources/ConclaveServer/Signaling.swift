import Connections
import JanusFront
import Listening
import Logging
import MediaModel
import NIOPosix
import STOMPFront

/// The signaling plane of a server: its ports, the fronts behind them, and the clients of all fronts.
struct Signaling: Sendable {
  struct Configuration: Sendable {
    var listening = ListeningConfiguration()
    var clients = ClientLimits()
    var stomp = STOMPConfiguration()
  }

  let clients: ConnectedClients
  /// The ports that are really bound; 0 and nil for those that are not configured.
  let httpPort: Int
  let stompPort: Int
  let stompTLSPort: Int?
  private let listeners: Listeners
  private let stomp: STOMPServer
  /// The port that the rooms have to themselves; nil without one.
  let roomPort: Int?

  /// Opens all ports.
  /// - Parameters:
  ///   - incarnation: this run of the server, for the ids of sessions.
  ///   - sink: gets the commands of all sessions.
  ///   - routes: answer HTTP requests to any path but the WebSockets'.
  /// - Throws: `ConfigurationError`. Nothing is left open then.
  static func open(
    _ configuration: Configuration, incarnation: Incarnation, group: MultiThreadedEventLoopGroup,
    authenticator: any Authenticator, clock: WallClock, sink: any SignalingSink, rooms: RoomService? = nil,
    routes: [Route],
    logger: Logger
  ) async throws(ConfigurationError) -> Signaling {
    let listeners = Listeners(configuration.listening, group: group, logger: logger) { clock.machineTime() }
    let clients = ConnectedClients(configuration.clients, of: incarnation, listeners, on: group.next())
    let stomp = STOMPServer(
      configuration.stomp, listeners, clients, group: group, authenticator: authenticator, sink: sink)
    let front = rooms?.front(listeners)
    do {
      let (http, tcp, others) = try await listeners.open(
        webSockets: [stomp.webSocket] + (front.map { [$0.webSocket] } ?? []), tcp: stomp.ports,
        routes: (front.map { [$0.route] } ?? []) + routes, others: front.flatMap { rooms?.ports(of: $0) } ?? [])
      let hasPlain = configuration.stomp.port != nil
      return Signaling(
        clients: clients, httpPort: http, stompPort: hasPlain ? tcp[0] : 0,
        stompTLSPort: tcp.dropFirst(hasPlain ? 1 : 0).first, listeners: listeners, stomp: stomp,
        roomPort: others.first)
    } catch {
      stomp.stop()
      clients.stop(message: "")
      throw ConfigurationError("\(error)")
    }
  }

  /// Counts since the start, and gauges of open connections and sessions.
  var statistics: SignalingStatistics {
    var statistics = listeners.statistics
    statistics.backlogBytes = clients.backlogBytes
    return statistics
  }

  /// Applies limits, origins and the certificate's files of another configuration. Ports and addresses stay.
  /// - Throws: `ListenError` if the certificate cannot be used. Nothing has changed then.
  func use(_ configuration: Configuration) throws(ListenError) {
    try listeners.use(configuration.listening)
    clients.use(configuration.clients)
    stomp.use(configuration.stomp)
  }

  /// Closes the ports, and all connections with a message.
  func stop() async {
    await listeners.close()
    stomp.stop()
    clients.stop(message: "the server is shutting down")
  }
}

extension SignalingStatistics.Drop {
  static let all = ofPorts + ofClients + ofSTOMP + ofJanus
}

extension SignalingStatistics.Ending {
  static let all = ofSTOMP + ofClients
}

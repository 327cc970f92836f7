import CallMessages
import Connections
import Contract
import Listening
import Logging
import MediaModel
import NIOCore
import NIOPosix
import STOMPFront
import Synchronization
import Testing

/// Collects the submitted commands, in order.
final class StubSink: SignalingSink {
  private let stream: AsyncStream<NodeCommand>
  private let continuation: AsyncStream<NodeCommand>.Continuation
  private let seen = Mutex<[NodeCommand]>([])

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func submit(_ command: NodeCommand) {
    seen.withLock { $0.append(command) }
    continuation.yield(command)
  }

  /// Waits for the first command, past or future, for which `pick` returns a value.
  func first<T: Sendable>(_ pick: @Sendable (NodeCommand) -> T?) async throws -> T {
    for await command in stream {
      if let found = pick(command) { return found }
    }
    throw CancellationError()
  }

  var all: [NodeCommand] { seen.withLock { $0 } }

  var disconnects: Int {
    all.count { if case .disconnect = $0 { true } else { false } }
  }

  func session() async throws -> SessionID {
    try await first { if case .connect(let session, _) = $0 { session } else { nil } }
  }

  func subscribed() async throws {
    try await first { if case .subscribe = $0 { () } else { nil } }
  }
}

/// Knows `user`, `user@device`, `service`, `short` (which ends at once), `never` (which gets no answer) and `late` (which waits for `release`).
struct StubAuthenticator: Authenticator {
  /// Holds back the answer for `late`.
  var release = AsyncStream<Void> { $0.finish() }

  func claims(of token: String) async -> Claims? {
    if token == "never" { try? await Task.sleep(for: .seconds(3_600)) }
    if token == "late" { for await _ in release {} }
    guard !token.hasPrefix("bad") else { return nil }
    let parts = token.split(separator: "@").map(String.init)
    let lifetime: Int64 = token == "expired" ? -1 : token == "short" ? 150 : 3_600_000
    return Claims(
      user: UserID(parts[0])!, name: "Name of \(parts[0])", device: parts.count > 1 ? DeviceID(parts[1]) : nil,
      isService: token == "service", expiresAt: Timestamp(milliseconds: 1_000_000 + lifetime))
  }
}

/// The configuration of a server for clients, with the members of all its parts.
@dynamicMemberLookup struct TestConfiguration {
  /// The limits of all parts, whose names are unique.
  @dynamicMemberLookup struct Limits {
    var listening: ListeningLimits
    var clients: ClientLimits
    var stomp: STOMPLimits

    subscript<Value>(dynamicMember path: WritableKeyPath<ListeningLimits, Value>) -> Value {
      get { listening[keyPath: path] }
      set { listening[keyPath: path] = newValue }
    }
    subscript<Value>(dynamicMember path: WritableKeyPath<ClientLimits, Value>) -> Value {
      get { clients[keyPath: path] }
      set { clients[keyPath: path] = newValue }
    }
    subscript<Value>(dynamicMember path: WritableKeyPath<STOMPLimits, Value>) -> Value {
      get { stomp[keyPath: path] }
      set { stomp[keyPath: path] = newValue }
    }
  }

  var listening = ListeningConfiguration()
  var clients = ClientLimits()
  var stomp = STOMPConfiguration()

  var stompPort: Int? {
    get { stomp.port }
    set { stomp.port = newValue }
  }

  var limits: Limits {
    get { Limits(listening: listening.limits, clients: clients, stomp: stomp.limits) }
    set { (listening.limits, clients, stomp.limits) = (newValue.listening, newValue.clients, newValue.stomp) }
  }

  subscript<Value>(dynamicMember path: WritableKeyPath<ListeningConfiguration, Value>) -> Value {
    get { listening[keyPath: path] }
    set { listening[keyPath: path] = newValue }
  }
  subscript<Value>(dynamicMember path: WritableKeyPath<STOMPConfiguration, Value>) -> Value {
    get { stomp[keyPath: path] }
    set { stomp[keyPath: path] = newValue }
  }
}

/// Listeners, the STOMP front behind them, and its clients.
struct TestServer {
  fileprivate let listeners: Listeners
  fileprivate let clients: ConnectedClients
  fileprivate let stomp: STOMPServer
  let httpPort: Int
  /// The port without TLS; 0 if there is none.
  let stompPort: Int
  let stompTLSPort: Int?

  var statistics: SignalingStatistics {
    var statistics = listeners.statistics
    statistics.backlogBytes = clients.backlogBytes
    return statistics
  }

  func stop() async {
    await listeners.close()
    stomp.stop()
    clients.stop(message: "the server is shutting down")
  }

  func charge(_ user: UserID, _ events: EventCharge) { clients.charge(user, events) }

  func refusal(_ session: SessionID) -> RequestError? { clients.refusal(session) }

  func deliver(_ deliveries: [Delivery]) { clients.deliver(deliveries) }

  func deliver(_ delivery: Delivery) { deliver([delivery]) }

  func event(_ session: SessionID, seq: UInt64, redelivered: Bool = false, epoch: UInt32 = 1) {
    let message = EventMessage(
      at: Timestamp(milliseconds: 5), call: CallID("c1"), body: .switchKeys(SwitchKeys(epoch: epoch)))
    deliver(
      .event(session, EventDelivery(seq: seq, redelivered: redelivered, messageID: UInt64(epoch), message: message)))
  }

  /// Waits until the statistics satisfy a condition.
  func until(_ isReached: (SignalingStatistics) -> Bool) async {
    while !isReached(statistics) { await Task.yield() }
  }
}

/// Runs `body` with a server on loopback ports that the system chooses.
func withServer(
  _ configure: (inout TestConfiguration) -> Void = { _ in },
  authenticator: StubAuthenticator = StubAuthenticator(), log: any LogHandler = SwiftLogNoOpLogHandler(),
  pages: @escaping @Sendable (HTTPRequest) async -> HTTPResponse = { HTTPResponse(text: $0.path) },
  _ body: (TestServer, StubSink) async throws -> Void
) async throws {
  var configuration = TestConfiguration()
  configuration.listening.host = "127.0.0.1"
  (configuration.stomp.port, configuration.stomp.tlsPort, configuration.listening.httpPort) = (0, 0, 0)
  // On a busy machine a client may need longer than the default to send the rest, and would see a reset.
  configuration.linger = .seconds(60)
  configure(&configuration)
  let sink = StubSink()
  let group = MultiThreadedEventLoopGroup.singleton
  let listeners = Listeners(
    configuration.listening, group: group, logger: Logger(label: "test", factory: { _ in log }),
    clock: { Timestamp(milliseconds: 1_000_000) })
  let clients = ConnectedClients(configuration.clients, of: Incarnation(3), listeners, on: group.next())
  let stomp = STOMPServer(
    configuration.stomp, listeners, clients, group: group, authenticator: authenticator, sink: sink)
  let ports = try await listeners.open(
    webSockets: [stomp.webSocket], tcp: stomp.ports, routes: [Route(.all, respond: pages)])
  let hasPlain = configuration.stomp.port != nil
  let server = TestServer(
    listeners: listeners, clients: clients, stomp: stomp, httpPort: ports.http, stompPort: hasPlain ? ports.tcp[0] : 0,
    stompTLSPort: ports.tcp.dropFirst(hasPlain ? 1 : 0).first)
  do {
    try await body(server, sink)
  } catch {
    await server.stop()
    throw error
  }
  await server.stop()
}

import JanusAPI
import JanusFront
import Listening
import Logging
import MediaModel
import NIOCore
import NIOPosix
import Octets
import Synchronization
import WireClients

/// The front on ports that the system chooses, with rooms behind it that have no media.
struct TestRooms {
  let rooms: Rooms
  let clients: JanusClients
  let httpPort: Int
  let roomPort: Int

  func socket() async throws -> TestWebSocket {
    try await TestWebSocket.open(roomPort, path: "/", headers: ["Sec-WebSocket-Protocol: janus-protocol"])
  }

  /// The answer to one HTTP request, with its head.
  func http(_ method: String, _ path: String, _ body: String = "", headers: [String] = []) async throws -> String {
    let client = try await TestClient.open(port: httpPort)
    let lines =
      ["\(method) \(path) HTTP/1.1", "Host: localhost", "Connection: close", "Content-Length: \(body.utf8.count)"]
      + headers
    try await client.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
    return await client.rest()
  }
}

/// Carries out commands at once, and notes how sockets end.
final class Rooms: JanusSink {
  private struct State {
    var gateway: JanusGateway<SplitMix64>
    var endings: [SocketEnding] = []
    var gone = 0
  }

  private let state: Mutex<State>
  private let clients: JanusClients

  init(_ clients: JanusClients, isOpen: Bool) throws {
    let configuration = GatewayConfiguration(isOpen: isOpen, anyoneCreates: true, rooms: [["room": 1]])
    state = Mutex(State(gateway: try JanusGateway(configuration, using: SplitMix64(seed: 1))))
    self.clients = clients
  }

  var endings: [SocketEnding] { state.withLock { $0.endings } }
  var exchangesGone: Int { state.withLock { $0.gone } }

  func submit(_ command: JanusCommand) {
    state.withLock { state in
      if case .socketEnded(_, let ending) = command { state.endings.append(ending) }
      if case .exchangeEnded = command { state.gone += 1 }
      let effects = state.gateway.handle(command, now: Instant(nanoseconds: 1))
      clients.deliver(
        effects.compactMap { effect in
          guard case .send(let requester, let message) = effect else { return nil }
          return (requester, message)
        })
    }
  }
}

/// Takes `secret` at once, and the token `slow` after a while.
struct TestJudge: JanusJudge {
  func grant(for secrets: JanusSecrets) async -> Grant {
    if secrets.token == "slow" {
      for _ in 0..<1_000 { await Task.yield() }
      return Grant(token: TokenGrant(identity: "ana"))
    }
    return Grant(hasSecret: secrets.apiSecret == "secret")
  }
}

func withRooms(
  isOpen: Bool = true, _ configure: (inout JanusConfiguration) -> Void = { _ in },
  _ body: (TestRooms) async throws -> Void
) async throws {
  var listening = ListeningConfiguration()
  listening.host = "127.0.0.1"
  listening.httpPort = 0
  listening.origins = .sameHost(also: ["https://app.example"])
  let listeners = Listeners(
    listening, group: MultiThreadedEventLoopGroup.singleton,
    logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
    clock: { Timestamp(milliseconds: 1_000_000) })
  let clients = JanusClients()
  let rooms = try Rooms(clients, isOpen: isOpen)
  var configuration = JanusConfiguration()
  configure(&configuration)
  let front = JanusServer(configuration, listeners, clients, judge: TestJudge(), sink: rooms, isOpen: isOpen)
  let ports = try await listeners.open(
    webSockets: [front.webSocket], tcp: [], routes: [front.route],
    others: [front.port(host: nil, port: 0, usesTLS: false)])
  do {
    try await body(TestRooms(rooms: rooms, clients: clients, httpPort: ports.http, roomPort: ports.others[0]))
  } catch {
    await listeners.close()
    throw error
  }
  await listeners.close()
}

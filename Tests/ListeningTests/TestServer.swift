import Listening
import Logging
import MediaModel
import NIOCore
import NIOPosix
import NIOWebSocket

typealias TestConfiguration = ListeningConfiguration

/// Listeners with pages, and a front whose WebSocket echoes each message.
struct TestServer {
  fileprivate let listeners: Listeners
  let httpPort: Int
  let echoPort: Int

  var statistics: SignalingStatistics { listeners.statistics }

  /// Waits until the statistics satisfy a condition.
  func until(_ isReached: (SignalingStatistics) -> Bool) async {
    while !isReached(statistics) { await Task.yield() }
  }
}

/// Runs `body` with a server on loopback ports that the system chooses.
func withServer(
  _ configure: (inout ListeningConfiguration) -> Void = { _ in }, log: any LogHandler = SwiftLogNoOpLogHandler(),
  routes: [Route] = [],
  pages: @escaping @Sendable (HTTPRequest) async -> HTTPResponse = { HTTPResponse(text: $0.path) },
  _ body: (TestServer) async throws -> Void
) async throws {
  var configuration = ListeningConfiguration()
  configuration.host = "127.0.0.1"
  configuration.httpPort = 0
  // On a busy machine a client may need longer than the default to send the rest, and would see a reset.
  configuration.linger = .seconds(60)
  configure(&configuration)
  let listeners = Listeners(
    configuration, group: MultiThreadedEventLoopGroup.singleton, logger: Logger(label: "test", factory: { _ in log }),
    clock: { Timestamp(milliseconds: 1_000_000) })
  let sockets = [
    WebSocketEndpoint(
      paths: ["/stomp", "/ws/"], subprotocols: ["second", "first"],
      bounds: { .init(message: 1 << 10, beforeLogin: 1 << 10) }, addHandlers: addEcho),
    WebSocketEndpoint(
      paths: ["/named"], subprotocols: ["named"], needsSubprotocol: true,
      bounds: { .init(message: 8, beforeLogin: 1 << 10) }, addHandlers: addEcho),
  ]
  let raw = TCPEndpoint(host: nil, port: 0, usesTLS: false) { channel in
    try channel.pipeline.syncOperations.addHandler(RawEcho())
  }
  let ports = try await listeners.open(webSockets: sockets, tcp: [raw], routes: routes + [Route(.all, respond: pages)])
  do {
    try await body(TestServer(listeners: listeners, httpPort: ports.http, echoPort: ports.tcp[0]))
  } catch {
    await listeners.close()
    throw error
  }
  await listeners.close()
}

private func addEcho(_ channel: any Channel, _ gate: LoginGate) throws {
  try channel.pipeline.syncOperations.addHandler(Echo(gate))
}

/// A front that only echoes messages. The first one logs in.
private final class Echo: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = WebSocketFrame

  private let gate: LoginGate

  init(_ gate: LoginGate) { self.gate = gate }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    gate.open()
    let frame = WebSocketFrame(fin: true, opcode: .text, data: Self.unwrapInboundIn(data))
    context.writeAndFlush(Self.wrapOutboundOut(frame), promise: nil)
  }
}

private final class RawEcho: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
}

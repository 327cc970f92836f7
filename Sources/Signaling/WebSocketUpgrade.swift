import NIOCore
import NIOHTTP1
import NIOWebSocket
import STOMP

/// The handshake: which requests become STOMP connections.
enum WebSocketUpgrade {
  static let paths: Set<String> = ["/stomp", "/stomp/websocket", "/ws", "/ws/"]

  static func isEndpoint(_ uri: String) -> Bool { paths.contains(String(uri.prefix { $0 != "?" })) }

  static func allowsOrigin(_ head: HTTPRequestHead, _ services: Services) -> Bool {
    services.configuration.origins.allows(
      origin: head.headers.first(name: "origin"), host: head.headers.first(name: "host"))
  }

  static func upgrader(_ services: Services) -> NIOWebSocketServerUpgrader {
    NIOWebSocketServerUpgrader(
      maxFrameSize: services.configuration.messageBytes,
      automaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        guard head.method == .GET, isEndpoint(head.uri), allowsOrigin(head, services) else {
          return channel.eventLoop.makeSucceededFuture(nil)
        }
        var headers = HTTPHeaders()
        headers.add(contentsOf: subprotocol(offered: head.headers[canonicalForm: "sec-websocket-protocol"]))
        return channel.eventLoop.makeSucceededFuture(headers)
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture { try addHandlers(to: channel, services) }
      })
  }

  /// The highest version offered; no header when none is, or only strange ones are. What is spoken is settled by CONNECT.
  private static func subprotocol(offered: [Substring]) -> [(String, String)] {
    for name in ["v12.stomp", "v11.stomp", "v10.stomp"] where offered.contains(Substring(name)) {
      return [("Sec-WebSocket-Protocol", name)]
    }
    return []
  }

  private static func addHandlers(to channel: any Channel, _ services: Services) throws {
    let gate = LoginGate(bytes: 2 * services.configuration.limitsBeforeLogin.head)
    let pipeline = channel.pipeline.syncOperations
    // In front of the frame decoder, behind TLS.
    let decoder = try pipeline.context(handlerType: ByteToMessageHandler<WebSocketFrameDecoder>.self)
    try pipeline.addHandler(gate, position: .before(decoder.handler))
    try pipeline.addHandler(WebSocketFraming(messageBytes: services.configuration.messageBytes))
    try pipeline.addHandler(
      ConnectionHandler(services: services, gate: gate, now: channel.eventLoop.now.uptimeNanoseconds))
  }
}

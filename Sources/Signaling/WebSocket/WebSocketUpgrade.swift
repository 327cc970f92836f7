import MediaModel
import NIOCore
import NIOHTTP1
import NIOWebSocket
import STOMP

/// The handshake (RFC 6455 section 4.2): which requests become STOMP connections.
enum WebSocketUpgrade {
  static let paths: Set<String> = ["/stomp", "/stomp/", "/stomp/websocket", "/ws", "/ws/"]

  static func isEndpoint(_ uri: String) -> Bool { paths.contains(String(uri.prefix { $0 != "?" })) }

  /// The answer to a request for an endpoint that cannot become a WebSocket; nil for one that can.
  static func refusal(of head: HTTPRequestHead, body: ByteBuffer, _ services: SharedServices) -> HTTPResponse? {
    let origins = head.headers["origin"]
    guard origins.count <= 1,
      services.configuration.origins.allows(origin: origins.first, host: head.headers.first(name: "host"))
    else {
      services.counters.drop(.foreignOrigin)
      return HTTPResponse(
        status: 403, text: "pages of this origin may not connect; listen.origins names those that may")
    }
    guard head.method == .GET, head.version == .http1_1, head.isUpgrade,
      head.headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == "websocket" }),
      head.headers["sec-websocket-version"] == ["13"]
    else {
      var response = HTTPResponse(status: 426, text: "this is a WebSocket, version 13")
      response.headers += [("upgrade", "websocket"), ("sec-websocket-version", "13")]
      return response
    }
    let keys = head.headers["sec-websocket-key"]
    guard keys.count == 1, isKey(keys[0]), body.readableBytes == 0 else {
      return HTTPResponse(
        status: 400, text: "a handshake has one Sec-WebSocket-Key, which is base64 of 16 bytes, and no body")
    }
    return nil
  }

  /// Base64 of 16 bytes: 22 characters and the padding.
  private static func isKey(_ text: String) -> Bool {
    let characters = text.utf8
    return characters.count == 24 && text.hasSuffix("==")
      && characters.prefix(22).allSatisfy { character in
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
          true
        default: false
        }
      }
  }

  /// The headers of the answer to a handshake that `refusal` permits.
  static func headers(
    for head: HTTPRequestHead, on channel: any Channel
  ) -> EventLoopFuture<HTTPHeaders> {
    let offered = head.headers[canonicalForm: "sec-websocket-protocol"]
    // The highest offered version; no header if none, or only unknown ones, are offered. CONNECT settles the version.
    let chosen = ["v12.stomp", "v11.stomp", "v10.stomp"].first { offered.contains(Substring($0)) }
    let headers = HTTPHeaders(chosen.map { [("sec-websocket-protocol", $0)] } ?? [])
    // Used only for Sec-WebSocket-Accept.
    let upgrader = NIOWebSocketServerUpgrader(
      shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(headers) },
      upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
    return upgrader.buildUpgradeResponse(channel: channel, upgradeRequest: head, initialResponseHeaders: [:])
  }

  /// Turns the channel into a STOMP connection over WebSocket.
  static func addHandlers(to channel: any Channel, _ services: SharedServices) throws {
    let gate = LoginGate(bytes: 2 * services.configuration.limits.frameBeforeLogin.head)
    let messageBytes = services.configuration.limits.messageBytes
    try channel.pipeline.syncOperations.addHandlers(
      WebSocketFrameEncoder(), gate, ByteToMessageHandler(WebSocketFrameReader(maximumBytes: messageBytes)),
      WebSocketFraming(messageBytes: messageBytes, linger: .nanoseconds(services.configuration.linger.nanoseconds)),
      ConnectionHandler(services: services, gate: gate, now: channel.eventLoop.now.uptimeNanoseconds))
  }
}

extension HTTPRequestHead {
  /// Whether it requests another protocol on this connection. Its parser then reads nothing that follows.
  var isUpgrade: Bool {
    headers.contains(name: "upgrade")
      && headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
  }
}

/// Closes a WebSocket that sends more than a login needs before it has logged in, because the frame decoder behind it would buffer whole
/// messages.
final class LoginGate: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var left: Int?

  init(bytes: Int) { left = bytes }

  func open() { left = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if let bytes = left {
      left = bytes - Self.unwrapInboundIn(data).readableBytes
      guard bytes >= Self.unwrapInboundIn(data).readableBytes else { return context.close(promise: nil) }
    }
    context.fireChannelRead(data)
  }
}

import MediaModel
package import NIOCore
import NIOHTTP1
import NIOWebSocket

/// A WebSocket that a front serves on the HTTP port.
package struct WebSocketEndpoint: Sendable {
  /// In bytes.
  package struct Bounds: Sendable {
    /// The longest message, all its fragments together.
    let message: Int
    /// A client may send so much before `LoginGate.open`.
    let beforeLogin: Int

    package init(message: Int, beforeLogin: Int) {
      self.message = message
      self.beforeLogin = beforeLogin
    }
  }

  let paths: Set<String>
  /// That the front speaks, the preferred one first.
  let subprotocols: [String]
  /// Whether a client has to offer one of them.
  let needsSubprotocol: Bool
  /// The bounds of a connection that begins now.
  let bounds: @Sendable () -> Bounds
  /// Adds the front's handlers, which read each message as a `ByteBuffer`, write a `WebSocketFrame` for each, and open the gate when the client has logged in.
  let addHandlers: @Sendable (any Channel, LoginGate) throws -> Void

  package init(
    paths: Set<String>, subprotocols: [String], needsSubprotocol: Bool = false,
    bounds: @escaping @Sendable () -> Bounds,
    addHandlers: @escaping @Sendable (any Channel, LoginGate) throws -> Void
  ) {
    self.paths = paths
    self.subprotocols = subprotocols
    self.needsSubprotocol = needsSubprotocol
    self.bounds = bounds
    self.addHandlers = addHandlers
  }

  /// The first of the subprotocols that the client offers.
  func subprotocol(for head: HTTPRequestHead) -> String? {
    let offered = head.headers[canonicalForm: "sec-websocket-protocol"]
    return subprotocols.first { offered.contains(Substring($0)) }
  }
}

/// The handshake (RFC 6455 section 4.2): which requests become WebSockets.
enum WebSocketUpgrade {
  /// The answer to a request for an endpoint that cannot become a WebSocket; nil for one that can.
  static func refusal(
    of head: HTTPRequestHead, body: ByteBuffer, at endpoint: WebSocketEndpoint, _ listeners: Listeners
  ) -> HTTPResponse? {
    let origins = head.headers["origin"]
    guard origins.count <= 1,
      listeners.configuration.origins.allows(origin: origins.first, host: head.headers.first(name: "host"))
    else {
      listeners.counters.drop(.foreignOrigin)
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
    guard !endpoint.needsSubprotocol || endpoint.subprotocol(for: head) != nil else {
      let names = endpoint.subprotocols.joined(separator: " or ")
      return HTTPResponse(status: 400, text: "offer \(names) in Sec-WebSocket-Protocol")
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
    for head: HTTPRequestHead, to endpoint: WebSocketEndpoint, on channel: any Channel
  ) -> EventLoopFuture<HTTPHeaders> {
    // No header if none, or only unknown ones, are offered.
    let headers = HTTPHeaders(endpoint.subprotocol(for: head).map { [("sec-websocket-protocol", $0)] } ?? [])
    // Used only for Sec-WebSocket-Accept.
    let upgrader = NIOWebSocketServerUpgrader(
      shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(headers) },
      upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
    return upgrader.buildUpgradeResponse(channel: channel, upgradeRequest: head, initialResponseHeaders: [:])
  }

  /// Turns the channel into a WebSocket of the endpoint's front.
  static func addHandlers(to channel: any Channel, _ endpoint: WebSocketEndpoint, _ listeners: Listeners) throws {
    let bounds = endpoint.bounds()
    let gate = LoginGate(bytes: bounds.beforeLogin)
    try channel.pipeline.syncOperations.addHandlers(
      WebSocketFrameEncoder(), gate, ByteToMessageHandler(WebSocketFrameReader(maximumBytes: bounds.message)),
      WebSocketFraming(
        messageBytes: bounds.message, linger: .nanoseconds(listeners.configuration.linger.nanoseconds)))
    try endpoint.addHandlers(channel, gate)
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
package final class LoginGate: ChannelInboundHandler {
  package typealias InboundIn = ByteBuffer
  package typealias InboundOut = ByteBuffer

  private var left: Int?

  init(bytes: Int) { left = bytes }

  package func open() { left = nil }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if let bytes = left {
      left = bytes - Self.unwrapInboundIn(data).readableBytes
      guard bytes >= Self.unwrapInboundIn(data).readableBytes else { return context.close(promise: nil) }
    }
    context.fireChannelRead(data)
  }
}

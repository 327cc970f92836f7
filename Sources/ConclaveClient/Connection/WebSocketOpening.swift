import NIOCore
import NIOHTTP1
import NIOWebSocket
import STOMP

/// Requests a WebSocket from the server (RFC 6455 section 4.1). Any answer but the expected one breaks the connection; redirects are not
/// followed.
final class WebSocketOpening: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  /// How long the handshake may take, including that of TLS.
  static let patience = TimeAmount.seconds(10)
  /// The largest accepted frame: a STOMP frame, which the server puts into one WebSocket frame.
  static let frameBytes = FrameLimits.client.head + FrameLimits.client.body

  private let request: HTTPRequestHead
  private let opened: EventLoopPromise<Void>
  private var timeout: Scheduled<Void>?

  /// `opened` succeeds once the WebSocket is there, and fails otherwise.
  init(of address: ServerAddress, path: String, opened: EventLoopPromise<Void>) {
    let headers: HTTPHeaders = ["Host": address.authority, "Sec-WebSocket-Protocol": "v12.stomp"]
    request = HTTPRequestHead(version: .http1_1, method: .GET, uri: path, headers: headers)
    self.opened = opened
  }

  /// Sends the request on this channel. The handler from `frames` is then added after the WebSocket.
  func addHandlers(to channel: any Channel, frames: @escaping @Sendable () -> FrameHandler) throws {
    let opening = NIOLoopBound(self, eventLoop: channel.eventLoop)
    let upgrader = NIOWebSocketClientUpgrader(maxFrameSize: Self.frameBytes, automaticErrorHandling: false) {
      [opened] channel, _ in
      let added = channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHandlers(WebSocketBytes(), frames())
      }
      added.cascade(to: opened)
      return added
    }
    try channel.pipeline.syncOperations.addHTTPClientHandlers(
      leftOverBytesStrategy: .forwardBytes,
      withClientUpgrade: (
        upgraders: [upgrader],
        completionHandler: { $0.pipeline.syncOperations.removeHandler(opening.value, promise: nil) }
      ))
    try channel.pipeline.syncOperations.addHandler(self)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    timeout = context.eventLoop.assumeIsolated().scheduleTask(in: Self.patience) { context.close(promise: nil) }
    context.write(wrapOutboundOut(.head(request)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func handlerRemoved(context: ChannelHandlerContext) { timeout?.cancel() }

  func channelInactive(context: ChannelHandlerContext) {
    opened.fail(ChannelError.eof)
    context.fireChannelInactive()
  }

  /// The server did not agree: its answer arrives here.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    opened.fail(error)
    context.close(promise: nil)
  }
}

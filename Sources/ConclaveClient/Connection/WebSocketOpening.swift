import NIOCore
import NIOHTTP1
import NIOWebSocket
import STOMP

/// Asks the server for a WebSocket (RFC 6455 section 4.1). Any answer but the wanted one breaks the connection; redirects are not followed.
final class WebSocketOpening: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  /// How long the handshake may take, that of TLS included.
  static let patience = TimeAmount.seconds(10)
  /// The largest frame taken: a STOMP frame, which the server puts into one of its own.
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

  /// Asks on this channel. The handler that `frames` brings then stands behind the WebSocket.
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

  /// The server did not agree: its answer comes here.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    opened.fail(error)
    context.close(promise: nil)
  }
}

import NIOCore

/// Closes a WebSocket that sends more than a login needs before it has logged in; the frame decoder behind it would buffer whole messages.
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

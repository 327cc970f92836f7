import NIOCore
import NIOWebSocket

/// STOMP's bytes in WebSocket frames (RFC 6455 section 5). Message boundaries mean nothing to STOMP, so each frame's payload is passed on as it arrives.
final class WebSocketBytes: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = WebSocketFrame

  /// Whether a message has begun whose last frame has not arrived.
  private var isInMessage = false
  private var hasSentClose = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !hasSentClose else { return }
    let frame = Self.unwrapInboundIn(data)
    // A server does not mask, and no extension gives the reserved bits a meaning (sections 5.1 and 5.2).
    guard frame.maskKey == nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return fail(context) }
    switch frame.opcode {
    case .text, .binary, .continuation:
      guard (frame.opcode == .continuation) == isInMessage else { return fail(context) }
      isInMessage = !frame.fin
      context.fireChannelRead(Self.wrapInboundOut(frame.data))
    // A server that does not read the pongs loses the connection, which `FrameHandler` enforces.
    case .ping: send(.pong, frame.data, context)
    case .pong: break
    case .connectionClose: context.channel.close(promise: nil)
    default: fail(context)
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let frame = WebSocketFrame(fin: true, opcode: .binary, maskKey: .random(), data: Self.unwrapOutboundIn(data))
    context.write(Self.wrapOutboundOut(frame), promise: promise)
  }

  /// A Close frame is sent first, so that a proxy sees an orderly end.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    sendClose(.normalClosure, context)
    context.close(mode: mode, promise: promise)
  }

  private func fail(_ context: ChannelHandlerContext) {
    sendClose(.protocolError, context)
    context.channel.close(promise: nil)
  }

  private func sendClose(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
    guard !hasSentClose, context.channel.isActive else { return }
    hasSentClose = true
    var data = ByteBuffer()
    data.write(webSocketErrorCode: code)
    send(.connectionClose, data, context)
  }

  private func send(_ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext) {
    let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    context.writeAndFlush(Self.wrapOutboundOut(frame), promise: nil)
  }
}

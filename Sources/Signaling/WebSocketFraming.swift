import NIOCore
import NIOWebSocket

/// STOMP's bytes in WebSocket messages: whole messages in, and one message a buffer out, as text unless it is not UTF-8.
final class WebSocketFraming: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = WebSocketFrame

  /// The largest message taken, all its fragments together.
  private let messageBytes: Int
  private var message: (opcode: WebSocketOpcode, bytes: ByteBuffer)?
  private var end: WebSocketEnd?
  private var hasSentClose = false

  init(messageBytes: Int) { self.messageBytes = messageBytes }

  // MARK: In

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = Self.unwrapInboundIn(data)
    // Clients must mask (RFC 6455 section 5.1), and no extension is agreed on that gives the reserved bits a meaning (5.2).
    guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return fail(context, .protocolError) }
    switch frame.opcode {
    case .text, .binary:
      guard message == nil else { return fail(context, .protocolError) }
      message = (frame.opcode, ByteBuffer())
      append(frame, context)
    case .continuation:
      guard message != nil else { return fail(context, .protocolError) }
      append(frame, context)
    case .ping:
      // Of pings that outrun the reading of their answers only some need one (RFC 6455 section 5.5.3).
      guard !hasSentClose, context.channel.isWritable else { return }
      let pong = WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)
      context.writeAndFlush(Self.wrapOutboundOut(pong), promise: nil)
    case .pong: break
    case .connectionClose: receiveClose(frame.unmaskedData, context)
    default: fail(context, .protocolError)
    }
  }

  private func append(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
    guard var message = exchange(&self.message, with: nil) else { return }
    var bytes = frame.unmaskedData
    guard message.bytes.readableBytes + bytes.readableBytes <= messageBytes else {
      return fail(context, .messageTooLarge)
    }
    message.bytes.writeBuffer(&bytes)
    guard frame.fin else {
      self.message = message
      return
    }
    guard message.opcode == .binary || message.bytes.isUTF8 else { return fail(context, .dataInconsistentWithMessage) }
    context.fireChannelRead(Self.wrapInboundOut(message.bytes))
  }

  private func receiveClose(_ payload: ByteBuffer, _ context: ChannelHandlerContext) {
    var payload = payload
    if !hasSentClose {
      // A code alone is answered with itself; none, or one that may not be on the wire, is not.
      let code = payload.readWebSocketErrorCode() ?? .normalClosure
      sendClose(code.isOnTheWire ? code : .protocolError, context)
    }
    context.close(promise: nil)
  }

  /// A violation of RFC 6455 itself.
  private func fail(_ context: ChannelHandlerContext, _ code: WebSocketErrorCode) {
    message = nil
    if !hasSentClose { sendClose(code, context) }
    context.close(promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? NIOWebSocketError {
      fail(context, error == .invalidFrameLength ? .messageTooLarge : .protocolError)
    } else {
      context.fireErrorCaught(error)
    }
  }

  // MARK: Out

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let bytes = Self.unwrapOutboundIn(data)
    let frame = WebSocketFrame(fin: true, opcode: bytes.isUTF8 ? .text : .binary, data: bytes)
    context.write(Self.wrapOutboundOut(frame), promise: promise)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard let end = event as? WebSocketEnd else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    self.end = end
    promise?.succeed()
  }

  /// Closing the output is a Close frame here; the client answers with its own, and then the connection goes.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .output else { return context.close(mode: mode, promise: promise) }
    if !hasSentClose { sendClose(end?.code ?? .goingAway, context) }
    promise?.succeed()
  }

  private func sendClose(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
    hasSentClose = true
    var data = ByteBuffer()
    data.write(webSocketErrorCode: code)
    let frame = WebSocketFrame(fin: true, opcode: .connectionClose, data: data)
    context.writeAndFlush(Self.wrapOutboundOut(frame), promise: nil)
  }
}

extension WebSocketErrorCode {
  /// RFC 6455 section 7.4: 1004 to 1006 and 1015 are never sent, nor is what is below 1000 or not assigned.
  fileprivate var isOnTheWire: Bool {
    let number = UInt16(webSocketErrorCode: self)
    return (1_000...1_003).contains(number) || (1_007...1_014).contains(number) || (3_000...4_999).contains(number)
  }
}

extension ByteBuffer {
  fileprivate var isUTF8: Bool { (try? UTF8Span(validating: readableBytesUInt8Span)) != nil }
}

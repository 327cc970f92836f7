import NIOCore
package import NIOWebSocket

/// A front's bytes in WebSocket messages: whole messages in, and one unfragmented frame per message out.
final class WebSocketFraming: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// Fragments of one message. Its bytes do not bound them, because a fragment may be empty.
  private static let maximumFragments = 1_024

  /// The largest accepted message, all its fragments together.
  private let messageBytes: Int
  /// How long a client that violated a rule may take to read the Close frame. If the server closed immediately, the kernel would answer the client's
  /// unread bytes with a reset, and the Close frame could be lost.
  private let linger: TimeAmount
  private var message: (opcode: WebSocketOpcode, fragments: Int, bytes: ByteBuffer)?
  private var end: WebSocketEnd?
  private var hasSentClose = false
  /// The client violated a rule or sent its Close: further input is dropped.
  private var ignoresInput = false

  init(messageBytes: Int, linger: TimeAmount) {
    self.messageBytes = messageBytes
    self.linger = linger
  }

  // MARK: In

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !ignoresInput else { return }
    let frame = Self.unwrapInboundIn(data)
    switch frame.opcode {
    case .text, .binary:
      guard message == nil else { return fail(context, .protocolError) }
      message = (frame.opcode, 0, ByteBuffer())
      append(frame, context)
    case .continuation:
      guard message != nil else { return fail(context, .protocolError) }
      append(frame, context)
    case .ping:
      // When pings arrive faster than their answers are read, only some need an answer (RFC 6455 section 5.5.3).
      guard !hasSentClose, context.channel.isWritable else { return }
      let pong = WebSocketFrame(fin: true, opcode: .pong, data: frame.unmaskedData)
      context.writeAndFlush(Self.wrapOutboundOut(pong), promise: nil)
    case .connectionClose: receiveClose(frame.unmaskedData, context)
    // Pongs need no answer (RFC 6455 section 5.5.3).
    default: break
    }
  }

  private func append(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
    guard var message = exchange(&self.message, with: nil) else { return }
    var bytes = frame.unmaskedData
    message.fragments += 1
    guard message.bytes.readableBytes + bytes.readableBytes <= messageBytes, message.fragments <= Self.maximumFragments
    else { return fail(context, .messageTooLarge) }
    // A message of one frame, as most are, is passed on without another copy.
    if message.bytes.readableBytes == 0 { message.bytes = bytes } else { message.bytes.writeBuffer(&bytes) }
    guard frame.fin else {
      self.message = message
      return
    }
    guard message.opcode == .binary || message.bytes.isUTF8 else { return fail(context, .dataInconsistentWithMessage) }
    context.fireChannelRead(Self.wrapInboundOut(message.bytes))
  }

  /// A Close is answered with its own code (RFC 6455 section 5.5.1), a Close without a code with a normal end.
  private func receiveClose(_ payload: ByteBuffer, _ context: ChannelHandlerContext) {
    var reason = payload
    let code = reason.readWebSocketErrorCode()
    guard payload.readableBytes == 0 || code?.isOnTheWire == true else { return fail(context, .protocolError) }
    guard reason.isUTF8 else { return fail(context, .dataInconsistentWithMessage) }
    ignoresInput = true
    if !hasSentClose { sendClose(code ?? .normalClosure, context) }
    context.fireUserInboundEventTriggered(WebSocketClosed())
    context.close(promise: nil)
  }

  /// A violation of RFC 6455 itself: the session and the output end now, the connection when the client ends it, too, or after
  /// `linger`.
  private func fail(_ context: ChannelHandlerContext, _ code: WebSocketErrorCode) {
    guard !ignoresInput else { return }
    ignoresInput = true
    message = nil
    if !hasSentClose { sendClose(code, context) }
    context.close(mode: .output, promise: nil)
    context.eventLoop.assumeIsolated().scheduleTask(in: linger) { context.close(promise: nil) }
    context.fireErrorCaught(WebSocketBreach(code))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if ignoresInput, event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let breach = error as? WebSocketBreach { return fail(context, breach.code) }
    // Bytes after a breach.
    if ignoresInput, error is ByteToMessageDecoderError { return }
    context.fireErrorCaught(error)
  }

  // MARK: Out

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // Nothing follows a Close (RFC 6455 section 5.5.1).
    guard !hasSentClose else {
      promise?.fail(ChannelError.outputClosed)
      return
    }
    context.write(data, promise: promise)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard let end = event as? WebSocketEnd else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    self.end = end
    promise?.succeed()
  }

  /// Closing the output sends a Close frame here. The client answers with its own, and then the connection is closed. After a breach it is
  /// closed anyway.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard mode == .output || ignoresInput && context.channel.isActive else {
      return context.close(mode: mode, promise: promise)
    }
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
  /// RFC 6455 section 7.4: 1004 to 1006, 1015, unassigned codes and codes below 1000 are never sent.
  fileprivate var isOnTheWire: Bool {
    let number = UInt16(webSocketErrorCode: self)
    return (1_000...1_003).contains(number) || (1_007...1_014).contains(number) || (3_000...4_999).contains(number)
  }
}

/// Tells the WebSocket layer, if there is one, with which code to close (RFC 6455 section 7.4).
package struct WebSocketEnd: Sendable {
  let code: WebSocketErrorCode

  package init(_ code: WebSocketErrorCode) { self.code = code }
}

/// The client sent a valid Close frame: it wanted to leave, and was not cut off.
package struct WebSocketClosed: Sendable { package init() {} }

extension ByteBuffer {
  fileprivate var isUTF8: Bool { (try? UTF8Span(validating: readableBytesUInt8Span)) != nil }
}

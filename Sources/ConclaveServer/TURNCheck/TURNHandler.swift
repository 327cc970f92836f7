import Foundation
import NIOCore
import NIOSSL

/// Drives a conversation on its channel, and repeats its request over UDP until there is an answer (RFC 8489 section 6.2.1).
final class TURNHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let firstPause = TimeAmount.milliseconds(500)

  private var conversation: TURNConversation
  private let result: EventLoopPromise<TURNConnection.Result>
  private let isStream: Bool
  private let limit: TimeAmount
  private var generator = SystemRandomNumberGenerator()
  private var input = ByteBuffer()
  private var again: Scheduled<Void>?
  private var end: Scheduled<Void>?

  init(
    _ conversation: TURNConversation, _ result: EventLoopPromise<TURNConnection.Result>, isStream: Bool,
    limit: TimeAmount
  ) {
    self.conversation = conversation
    self.result = result
    self.isStream = isStream
    self.limit = limit
  }

  func handlerAdded(context: ChannelHandlerContext) {
    end = context.eventLoop.scheduleTask(in: limit) { [result] in result.succeed(.silence) }
    send(conversation.begin(using: &generator), context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    again?.cancel()
    end?.cancel()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = Self.unwrapInboundIn(data)
    guard isStream else { return take(bytes, context) }
    input.writeBuffer(&bytes)
    guard TURNMessage.startsMessage(input) else {
      return result.succeed(.other(isHTTP: input.readableBytesView.starts(with: "HTTP/".utf8)))
    }
    while let length = TURNMessage.length(in: input), let message = input.readSlice(length: length) {
      take(message, context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) { result.succeed(.closed) }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? IOError, error.errnoCode == ECONNREFUSED { return result.succeed(.refused) }
    let isOfTLS = error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError
    result.succeed(isOfTLS ? .tlsFailed("\(error)") : .failed("\(error)"))
  }

  private func take(_ message: ByteBuffer, _ context: ChannelHandlerContext) {
    switch conversation.take(message, using: &generator) {
    case .wait: break
    case .end(let outcome): result.succeed(.ended(outcome))
    case .send(let request): send(request, context)
    }
  }

  private func send(_ request: ByteBuffer, _ context: ChannelHandlerContext, pause: TimeAmount = firstPause) {
    again?.cancel()
    context.writeAndFlush(Self.wrapOutboundOut(request), promise: nil)
    guard !isStream else { return }
    again = context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
      self.send(request, context, pause: pause * 2)
    }
  }
}

import NIOCore

/// The bytes of a connected UDP socket's datagrams, without the addresses.
final class DatagramBytes: ChannelDuplexHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = AddressedEnvelope<ByteBuffer>

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    context.fireChannelRead(Self.wrapInboundOut(Self.unwrapInboundIn(data).data))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard let peer = context.channel.remoteAddress else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    let datagram = AddressedEnvelope(remoteAddress: peer, data: Self.unwrapOutboundIn(data))
    context.write(Self.wrapOutboundOut(datagram), promise: promise)
  }
}

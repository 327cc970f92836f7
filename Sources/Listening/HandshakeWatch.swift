import Logging
import NIOCore
import NIOSSL

/// Counts TLS handshakes that fail and logs some of them, without the remote address.
final class HandshakeWatch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let listeners: Listeners

  init(listeners: Listeners) { self.listeners = listeners }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case NIOSSLError.handshakeFailed(let reason) = error {
      listeners.counters.drop(.tlsHandshake)
      listeners.log.log(.tlsHandshake, .info, "a TLS handshake failed", ["reason": "\(reason)"])
    }
    context.fireErrorCaught(error)
  }
}

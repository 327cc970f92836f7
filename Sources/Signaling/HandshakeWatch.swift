import Logging
import NIOCore
import NIOSSL

/// Counts TLS handshakes that fail and logs some of them, without the address that they came from.
final class HandshakeWatch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let services: Services

  init(services: Services) { self.services = services }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case NIOSSLError.handshakeFailed(let reason) = error {
      services.counters.drop(.tlsHandshake)
      services.log.log(.tlsHandshake, .info, "a TLS handshake failed", ["reason": "\(reason)"])
    }
    context.fireErrorCaught(error)
  }
}

import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOSSL
import NIOWebSocket

@testable import Listening

/// The HTTP decoder of the server's port, with its limits.
func readHTTP(_ input: UnsafeMutableRawBufferPointer) {
  var limits = NIOHTTPDecoderLimitConfiguration()
  limits.maxHeaderFieldSize = 8 << 10
  limits.maxHeaderListSize = 32 << 10
  limits.maxHeaderFieldCount = 100
  let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)
  feed(input, to: [ByteToMessageHandler(decoder), HTTPServerPipelineHandler(), NIOHTTPResponseHeadersValidator()])
}

func readWebSocket(_ input: UnsafeMutableRawBufferPointer) {
  feed(
    input,
    to: [
      ByteToMessageHandler(WebSocketFrameReader(maximumBytes: 4_096)),
      WebSocketFraming(messageBytes: 4_096, linger: .zero),
    ])
}

private let tls: NIOSSLContext = {
  let folder = "Tests/ListeningTests/Vectors/test"
  let chain = try! NIOSSLCertificate.fromPEMFile("\(folder)-certificate.pem")
  let key = try! NIOSSLPrivateKey(file: "\(folder)-key.pem", format: .pem)
  return try! NIOSSLContext(
    configuration: .makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key)))
}()

func readTLS(_ input: UnsafeMutableRawBufferPointer) { feed(input, to: [NIOSSLServerHandler(context: tls)]) }

/// Gives the handlers the input in two pieces. An error closes the channel, as it does on the server.
private func feed(_ input: UnsafeMutableRawBufferPointer, to handlers: [any ChannelHandler]) {
  let channel = EmbeddedChannel()
  guard (try? channel.pipeline.syncOperations.addHandlers(handlers)) != nil else { fatalError("no pipeline") }
  channel.connect(to: try! SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
  let cut = input.count / 2
  for piece in [input[..<cut], input[cut...]] {
    guard (try? channel.writeInbound(ByteBuffer(bytes: piece))) != nil else { break }
  }
  _ = try? channel.finish(acceptAlreadyClosed: true)
}

import Contract
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOSSL
import NIOWebSocket
import STOMP

@testable import Signaling

/// The frames do not depend on how the stream was cut.
func readSTOMP(_ input: UnsafeMutableRawBufferPointer) {
  for version in Version.allCases {
    for limits in [FrameLimits.beforeLogin, FrameLimits()] {
      let whole = Result { try frames(in: input.octets, version, limits, cut: input.count) }
      let cut = Result { try frames(in: input.octets, version, limits, cut: input.count / 2) }
      switch (whole, cut) {
      case (.success(let one), .success(let other)): precondition(one == other)
      case (.failure, .failure): break
      default: fatalError("the cut decides whether the stream is read")
      }
    }
  }
  _ = HeartBeat(header: input.text)
}

private func frames(
  in bytes: [UInt8], _ version: Version, _ limits: FrameLimits, cut: Int
) throws(FrameError) -> [Frame] {
  var decoder = FrameDecoder(version: version, limits: limits)
  var frames: [Frame] = []
  for piece in [bytes[..<cut], bytes[cut...]] {
    var piece = ByteBuffer(bytes: piece)
    decoder.append(&piece)
    while let frame = try decoder.next() { frames.append(frame) }
  }
  return frames
}

/// A destination, a line feed and a body.
func readRequest(_ input: UnsafeMutableRawBufferPointer) {
  let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
  guard parts.count == 2 else { return }
  let frame = Frame(
    .send, ["destination": String(decoding: parts[0], as: UTF8.self)], body: ByteBuffer(bytes: parts[1]))
  guard case .request(let path)? = Destination(of: frame) else { return }
  _ = try? RequestReader(keysBody: 1 << 20, body: 64 << 10).request(path, frame.body)
}

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
  let folder = "Tests/SignalingTests/Vectors/test"
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

package import NIOCore
import NIOPosix
import NIOSSL
package import STOMP
import Synchronization

/// A TCP client that sends any bytes and reads STOMP frames, or raw bytes.
package final class TestClient {
  package let channel: any Channel
  package var version: Version
  private var inbound: AsyncStream<ByteBuffer>.Iterator
  private var decoder: FrameDecoder
  private var raw = ByteBuffer()
  private let reset: Reset

  /// Whether the server ended the connection by a reset, or TLS without a close_notify, instead of orderly.
  package var wasReset: Bool { reset.seen.load(ordering: .relaxed) }

  private init(channel: any Channel, inbound: AsyncStream<ByteBuffer>, reset: Reset, version: Version) {
    self.channel = channel
    self.reset = reset
    self.inbound = inbound.makeAsyncIterator()
    self.version = version
    decoder = FrameDecoder(version: version, limits: .client)
  }

  /// A TLS client that closes waits for the answer to its close_notify.
  package static func open(port: Int, version: Version = .v12, tls: Bool = false) async throws -> TestClient {
    let (stream, continuation) = AsyncStream<ByteBuffer>.makeStream()
    let reset = Reset()
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: !tls)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if tls {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateVerification = .none
            configuration.shutdownTimeout = .hours(1)
            let handler = try NIOSSLClientHandler(
              context: NIOSSLContext(configuration: configuration), serverHostname: nil)
            try channel.pipeline.syncOperations.addHandler(handler)
          }
          try channel.pipeline.syncOperations.addHandler(Collector(continuation: continuation, reset: reset))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return TestClient(channel: channel, inbound: stream, reset: reset, version: version)
  }

  /// Opens a connection and logs in with `token`.
  package static func connected(
    to port: Int, token: String, version: Version = .v12, headers: String = "", tls: Bool = false
  ) async throws -> TestClient {
    let client = try await open(port: port, version: version, tls: tls)
    try await client.send(
      "CONNECT\naccept-version:\(version.rawValue)\nhost:h\npasscode:\(token)\n\(headers)\n\0")
    guard try await client.frame()?.command == .connected else { throw UnexpectedAnswer() }
    return client
  }

  package func send(_ text: String) async throws { try await send(Array(text.utf8)) }

  package func send(_ bytes: [UInt8]) async throws { try await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }

  package func subscribe(_ queue: String, id: String = "1", ack: String = "auto") async throws {
    try await send("SUBSCRIBE\nid:\(id)\ndestination:/user/queue/\(queue)\nack:\(ack)\nreceipt:s\n\n\0")
    guard try await frame()?.command == .receipt else { throw UnexpectedAnswer() }
  }

  /// The next frame; nil at the end.
  package func frame() async throws -> Frame? {
    decoder.version = version
    while true {
      if let frame = try decoder.next() { return frame }
      guard var bytes = await inbound.next() else { return nil }
      decoder.append(&bytes)
    }
  }

  /// Reads until `isEnough`, or the end.
  package func bytes(until isEnough: (ByteBuffer) -> Bool) async -> ByteBuffer {
    while !isEnough(raw), var bytes = await inbound.next() { raw.writeBuffer(&bytes) }
    return raw
  }

  /// Reads `count` bytes; nil at the end.
  package func take(_ count: Int) async -> [UInt8]? {
    _ = await bytes { $0.readableBytes >= count }
    return raw.readBytes(length: count)
  }

  /// All bytes until the server closes.
  package func rest() async -> String { String(buffer: await bytes { _ in false }) }

  /// Sends nothing more and reads to the end.
  package func finish() async {
    try? await channel.close(mode: .output)
    _ = await rest()
  }

  package func close() async throws { try await channel.close() }
}

/// The server's answer was not the expected one.
package struct UnexpectedAnswer: Error {}

private final class Reset: Sendable {
  let seen = Atomic(false)
}

private final class Collector: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  let continuation: AsyncStream<ByteBuffer>.Continuation
  let reset: Reset

  init(continuation: AsyncStream<ByteBuffer>.Continuation, reset: Reset) {
    self.continuation = continuation
    self.reset = reset
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { continuation.yield(Self.unwrapInboundIn(data)) }

  func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed { continuation.finish() }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    reset.seen.store(true, ordering: .relaxed)
    continuation.finish()
    context.close(promise: nil)
  }
}

import NIOCore
import NIOEmbedded
import NIOPosix
import NIOWebSocket
import Testing

@testable import ConclaveClient

/// The client side of a WebSocket, with servers that break the rules.
@Suite(.timeLimit(.minutes(5)))
struct WebSocketTests {
  /// Passes a server's frames in and the client's frames out.
  private final class Line {
    let channel = EmbeddedChannel(handler: WebSocketBytes())

    init() throws { try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait() }

    /// The bytes that the WebSocket delivers.
    func read(_ frame: WebSocketFrame) throws -> String? {
      try channel.writeInbound(frame)
      return try channel.readInbound(as: ByteBuffer.self).map { String(buffer: $0) }
    }

    func sent() throws -> WebSocketFrame? { try channel.readOutbound(as: WebSocketFrame.self) }
  }

  private func frame(_ opcode: WebSocketOpcode, _ text: String = "a", fin: Bool = true) -> WebSocketFrame {
    WebSocketFrame(fin: fin, opcode: opcode, data: ByteBuffer(string: text))
  }

  @Test func payloadsArePassedOnAsTheyCome() throws {
    let line = try Line()
    #expect(try line.read(frame(.binary, "CON", fin: false)) == "CON")
    #expect(try line.read(frame(.ping)) == nil)
    #expect(try line.read(frame(.continuation, "NEC")) == "NEC")
    #expect(try line.read(frame(.text, "TED")) == "TED")
    #expect(try line.read(frame(.pong)) == nil)
    #expect(line.channel.isActive)
  }

  @Test func everyFrameIsMaskedAndAPingIsAnswered() throws {
    let line = try Line()
    try line.channel.writeOutbound(ByteBuffer(string: "SEND"))
    let sent = try #require(try line.sent())
    #expect(sent.opcode == .binary && sent.fin && sent.maskKey != nil && String(buffer: sent.data) == "SEND")
    _ = try line.read(frame(.ping, "beat"))
    let pong = try #require(try line.sent())
    #expect(pong.opcode == .pong && pong.maskKey != nil && String(buffer: pong.data) == "beat")
  }

  @Test func aServerThatBreaksARuleIsLeftWithACloseFrame() throws {
    var masked = frame(.binary)
    masked.maskKey = [1, 2, 3, 4]
    var reserved = frame(.binary)
    reserved.rsv1 = true
    let unknown = try #require(WebSocketOpcode(encodedWebSocketOpcode: 0x3))
    for bad in [masked, reserved, frame(.continuation), frame(unknown)] {
      let line = try Line()
      #expect(try line.read(bad) == nil)
      let close = try #require(try line.sent())
      #expect(close.opcode == .connectionClose && close.maskKey != nil)
      #expect(!line.channel.isActive)
    }
  }

  @Test func theEndIsAnsweredOnce() throws {
    let line = try Line()
    #expect(try line.read(frame(.connectionClose, "")) == nil)
    #expect(try line.sent()?.opcode == .connectionClose)
    #expect(try line.sent() == nil)
    #expect(!line.channel.isActive)
  }

  /// The client disconnects from a web server that answers anything but a WebSocket, and tries again later.
  @Test(arguments: [
    "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno",
    "HTTP/1.1 301 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: wrong\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n", "220 mail.example ESMTP\r\n",
  ])
  func anotherAnswerIsNoConnection(_ answer: String) async throws {
    let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Answering(answer)) }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let address = ServerAddress(
      host: "127.0.0.1", port: server.localAddress?.port ?? 0, usesTLS: false, webSocketPath: "/stomp")
    let connection = SignalingConnection(
      address: address, user: "alice", device: "phone", group: .singletonMultiThreadedEventLoopGroup, token: { "good" })
    await connection.open()
    for await status in connection.statuses {
      #expect(status == .disconnected)
      break
    }
    await connection.close()
    try await server.close()
  }

  private final class Answering: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: String

    init(_ answer: String) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
    }
  }
}

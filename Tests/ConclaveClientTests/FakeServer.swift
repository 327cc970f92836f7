import NIOCore
import NIOPosix
import STOMP
import Synchronization

/// A STOMP server for one test: it accepts every token but "bad", answers requests by `reply`, and records what it got.
final class FakeServer: Sendable {
  struct Received: Sendable {
    var connection: Int
    var frame: Frame
  }

  let port: Int
  /// All frames, in order.
  let frames: AsyncStream<Received>
  private let channel: any Channel
  private let open = Mutex<[Int: any Channel]>([:])
  private let sink: AsyncStream<Received>.Continuation

  /// The server's reply to a SEND: status and JSON body; nil for silence.
  typealias Reply = @Sendable (_ destination: String, _ body: String) -> (status: String, body: String)?

  /// `user` is the user name in every CONNECTED. The frame from `behind` for a request's destination is sent right
  /// after the reply.
  init(
    user: String = "alice", reply: @escaping Reply = { _, _ in ("ok", "{}") },
    behind: @escaping @Sendable (_ destination: String) -> Frame? = { _ in nil }
  ) async throws {
    let (frames, sink) = AsyncStream<Received>.makeStream()
    self.frames = frames
    self.sink = sink
    let box = Box()
    channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            Handler(user: user, sink: sink, behind: behind, reply: reply) {
              box.server.withLock { $0 }?.accepted(channel) ?? 0
            })
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
    box.server.withLock { $0 = self }
  }

  private final class Box: Sendable { let server = Mutex<FakeServer?>(nil) }

  private func accepted(_ channel: any Channel) -> Int {
    open.withLock {
      $0[$0.count + 1] = channel
      return $0.count
    }
  }

  /// Sends an event as the server would.
  func event(
    _ name: String, seq: UInt64, body: String, redelivered: Bool = false, on connection: Int
  ) async throws {
    try await write(Self.event(name, seq: seq, body: body, redelivered: redelivered), on: connection)
  }

  static func event(_ name: String, seq: UInt64, body: String, redelivered: Bool = false) -> Frame {
    var headers: Headers = [
      "destination": "/user/queue/events", "subscription": "events", "message-id": "\(seq)", "ack": "a\(seq)",
      "event": name, "seq": "\(seq)", "content-type": "application/json",
    ]
    if redelivered { headers.append("redelivered", "true") }
    return Frame(.message, headers, body: ByteBuffer(string: body))
  }

  /// Answers a request that `reply` did not answer.
  func reply(to request: String, body: String, on connection: Int) async throws {
    let headers: Headers = [
      "destination": "/user/queue/replies", "subscription": "replies", "message-id": "r", "request-id": request,
      "status": "ok",
    ]
    try await write(Frame(.message, headers, body: ByteBuffer(string: body)), on: connection)
  }

  func fail(_ message: String, on connection: Int) async throws {
    try await write(Frame(.error, ["message": message]), on: connection)
    try await drop(connection)
  }

  func drop(_ connection: Int) async throws { try await open.withLock { $0[connection] }?.close() }

  func stop() async throws { try await channel.close() }

  private func write(_ frame: Frame, on connection: Int) async throws {
    try await open.withLock { $0[connection] }?.writeAndFlush(FrameEncoder(version: .v12).encode(frame))
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private var decoder = FrameDecoder(version: .v12, limits: .client)
    private let sink: AsyncStream<Received>.Continuation
    private let reply: Reply
    private let behind: @Sendable (String) -> Frame?
    private let accept: () -> Int
    private let user: String
    private var number = 0

    init(
      user: String, sink: AsyncStream<Received>.Continuation, behind: @escaping @Sendable (String) -> Frame?,
      reply: @escaping Reply, accept: @escaping () -> Int
    ) {
      self.behind = behind
      self.user = user
      self.sink = sink
      self.reply = reply
      self.accept = accept
    }

    func channelActive(context: ChannelHandlerContext) { number = accept() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      var bytes = unwrapInboundIn(data)
      decoder.append(&bytes)
      while let frame = try? decoder.next() {
        answer(frame, context: context)
        sink.yield(Received(connection: number, frame: frame))
      }
    }

    private func answer(_ frame: Frame, context: ChannelHandlerContext) {
      switch frame.command {
      case .connect where frame.headers["passcode"] == "bad":
        write(Frame(.error, ["message": "Bad CONNECT: authentication failed"]), context)
        context.close(promise: nil)
      case .connect:
        let headers: Headers = [
          "version": "1.2", "heart-beat": "0,0", "user-name": user,
          "device": frame.headers["device"] ?? "",
        ]
        write(Frame(.connected, headers), context)
      case .send:
        guard let answer = reply(frame.headers["destination"] ?? "", String(buffer: frame.body)) else { return }
        let headers: Headers = [
          "destination": "/user/queue/replies", "subscription": "replies", "message-id": "r",
          "request-id": frame.headers["request-id"] ?? "", "status": answer.status,
        ]
        var bytes = FrameEncoder(version: .v12).encode(
          Frame(.message, headers, body: ByteBuffer(string: answer.body)))
        if let frame = behind(frame.headers["destination"] ?? "") {
          bytes.writeImmutableBuffer(FrameEncoder(version: .v12).encode(frame))
        }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
      default: break
      }
    }

    private func write(_ frame: Frame, _ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(FrameEncoder(version: .v12).encode(frame)), promise: nil)
    }
  }
}

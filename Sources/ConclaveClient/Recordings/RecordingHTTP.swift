import Foundation
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Requests about recordings' files, over one connection to the server that stays open between them. Requests go one after the other, and one whose connection
/// broke before the answer is sent once more over a new one.
public actor RecordingHTTP: SegmentTransport {
  /// The largest body of an answer: a segment.
  static let answerLimit = 8 << 20
  /// How long an answer may take, and how much longer for each byte of the request or of the answer: 64 kbit/s.
  private static let patience = TimeAmount.seconds(20)
  private static let slowest = 8_000

  private let address: ServerAddress
  private let group: any EventLoopGroup
  private(set) var channel: (any Channel)?
  private var isBusy = false
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var isClosed = false

  /// - Parameter address: of the web server: that of the WebSocket. A `stomp:` address has none.
  public init(_ address: ServerAddress) { self.init(address, group: .singletonMultiThreadedEventLoopGroup) }

  /// Reads `https://host[:443]` or `http://host[:80]`; nil if it is neither.
  public init?(url: String) {
    // Its parts are those of a WebSocket's address.
    guard url.hasPrefix("https://") || url.hasPrefix("http://"), let address = ServerAddress("ws" + url.dropFirst(4)),
      address.webSocketPath == "/stomp"
    else { return nil }
    self.init(address)
  }

  /// As above, on the caller's event loops.
  package init(_ address: ServerAddress, group: any EventLoopGroup) {
    self.address = address
    self.group = group
  }

  /// Sends a request; nil if there was no answer in time.
  public func send(_ request: SegmentRequest) async -> SegmentAnswer? {
    await take()
    defer { release() }
    // A server may close a connection that was idle just when the request is sent. `PUT` and `GET` may be repeated (RFC 9110 section 9.2.2).
    let isReused = channel?.isActive == true
    if let answer = await attempt(request) { return answer }
    return isReused && !isClosed ? await attempt(request) : nil
  }

  /// Closes the connection; later requests get no answer.
  public func close() {
    isClosed = true
    channel?.close(promise: nil)
    channel = nil
  }

  // MARK: one request at a time

  private func take() async {
    guard isBusy else { return isBusy = true }
    await withCheckedContinuation { waiting.append($0) }
  }

  private func release() {
    guard !waiting.isEmpty else { return isBusy = false }
    waiting.removeFirst().resume()
  }

  private func attempt(_ request: SegmentRequest) async -> SegmentAnswer? {
    guard !isClosed, !Task.isCancelled, let channel = try? await open() else { return nil }
    let exchange = HTTPExchange.Request(
      head: head(of: request), body: channel.allocator.buffer(bytes: request.body),
      patience: Self.patience + .seconds(Int64((request.body.count + Self.answerLimit) / Self.slowest)))
    let answer = channel.eventLoop.makePromise(of: SegmentAnswer.self)
    let result: SegmentAnswer? = await withTaskCancellationHandler {
      // If the channel has closed meanwhile, no handler sees the exchange.
      let written = channel.eventLoop.makePromise(of: Void.self)
      written.futureResult.whenFailure { answer.fail($0) }
      channel.writeAndFlush(HTTPExchange.Exchange(request: exchange, answer: answer), promise: written)
      return try? await answer.futureResult.get()
    } onCancel: {
      channel.close(promise: nil)
    }
    if result == nil {
      channel.close(promise: nil)
      if self.channel === channel { self.channel = nil }
    }
    return result
  }

  private func head(of request: SegmentRequest) -> HTTPRequestHead {
    var headers: HTTPHeaders = ["host": address.authority, "authorization": "Bearer \(request.bearer)"]
    if let witness = request.witness { headers.add(name: "conclave-witness", value: witness) }
    if request.method == .put {
      headers.add(name: "content-type", value: "application/octet-stream")
      headers.add(name: "content-length", value: String(request.body.count))
    }
    return HTTPRequestHead(
      version: .http1_1, method: request.method == .put ? .PUT : .GET, uri: request.path, headers: headers)
  }

  private func open() async throws -> any Channel {
    if let channel, channel.isActive { return channel }
    let address = self.address
    let tls = try address.usesTLS ? NIOSSLContext(configuration: SignalingConnection.clientTLS(address)) : nil
    let opened = try await ClientBootstrap(group: group)
      .channelOption(.socketOption(.tcp_nodelay), value: 1)
      .connectTimeout(.seconds(10))
      .connect(host: address.host, port: address.port)
      // Not in the bootstrap's initializer: that runs for each address of the host.
      .flatMapThrowing { channel in
        guard channel.isActive else { throw ChannelError.eof }
        let pipeline = channel.pipeline.syncOperations
        if let tls {
          try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: address.certificateName))
        }
        try pipeline.addHTTPClientHandlers()
        try pipeline.addHandler(HTTPExchange())
        return channel
      }.get()
    guard !isClosed else {
      opened.close(promise: nil)
      throw ChannelError.ioOnClosedChannel
    }
    channel = opened
    return opened
  }
}

/// One exchange of a request and its answer after the other on a connection. Lives on the channel's event loop.
final class HTTPExchange: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = Exchange
  typealias OutboundOut = HTTPClientRequestPart

  struct Request: Sendable {
    var head: HTTPRequestHead
    var body: ByteBuffer
    var patience: TimeAmount
  }

  struct Exchange: Sendable {
    var request: Request
    var answer: EventLoopPromise<SegmentAnswer>
  }

  private var current: EventLoopPromise<SegmentAnswer>?
  private var answer = SegmentAnswer(status: 0)
  private var isLast = false
  private var timeout: Scheduled<Void>?

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let exchange = unwrapOutboundIn(data)
    guard current == nil else { return exchange.answer.fail(ChannelError.ioOnClosedChannel) }
    current = exchange.answer
    answer = SegmentAnswer(status: 0)
    timeout = context.eventLoop.assumeIsolated().scheduleTask(in: exchange.request.patience) {
      context.close(promise: nil)
    }
    context.write(wrapOutboundOut(.head(exchange.request.head)), promise: nil)
    if exchange.request.body.readableBytes > 0 {
      context.write(wrapOutboundOut(.body(.byteBuffer(exchange.request.body))), promise: nil)
    }
    context.write(wrapOutboundOut(.end(nil)), promise: promise)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      // An answer to no question, or more than it may be.
      let length = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
      guard current != nil, length <= RecordingHTTP.answerLimit else { return context.close(promise: nil) }
      isLast = !head.isKeepAlive
      answer.status = Int(head.status.code)
      answer.retryAfter = head.headers.first(name: "retry-after").flatMap { Int($0) }.map { max(0, $0) } ?? 0
    case .body(let part):
      guard answer.body.count + part.readableBytes <= RecordingHTTP.answerLimit else {
        return context.close(promise: nil)
      }
      answer.body += part.readableBytesView
    case .end:
      // 1xx, behind which the answer comes.
      guard answer.status >= 200 else { return }
      finish(.success(answer))
      if isLast { context.close(promise: nil) }
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    finish(.failure(ChannelError.eof))
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    finish(.failure(error))
    context.close(promise: nil)
  }

  private func finish(_ result: Result<SegmentAnswer, any Error>) {
    timeout?.cancel()
    timeout = nil
    guard let answer = current else { return }
    current = nil
    answer.completeWith(result)
  }
}

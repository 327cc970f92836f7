import MediaModel
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Answers HTTP requests that are no WebSocket handshakes, by asking the server's `pages`. One at a time: NIO's pipelining handler in front sees to that.
final class HTTPHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let services: Services
  private var request: (head: HTTPRequestHead, body: ByteBuffer)?
  private var context: ChannelHandlerContext?
  private var timeout: Scheduled<Void>?
  /// The answer has been given before the request was whole. The rest is read and thrown away, or the kernel would answer it with a reset that
  /// destroys the answer.
  private var isDiscarding = false

  init(services: Services) { self.services = services }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    startTimeout()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timeout?.cancel()
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isDiscarding {
      if case .end = Self.unwrapInboundIn(data) { context.close(promise: nil) }
      return
    }
    switch Self.unwrapInboundIn(data) {
    case .head(let head): request = (head, ByteBuffer())
    case .body(var bytes):
      guard let size = request?.body.readableBytes else { return }
      guard size + bytes.readableBytes <= services.configuration.httpBody else {
        return refuse(.payloadTooLarge)
      }
      request?.body.writeBuffer(&bytes)
    case .end:
      guard let (head, body) = exchange(&request, with: nil) else { return }
      timeout?.cancel()
      answer(head, body)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A handshake that is refused is reported so too, but the request follows and gets its answer.
    if error is NIOWebSocketUpgradeError { return }
    context.close(promise: nil)
  }

  private func answer(_ head: HTTPRequestHead, _ body: ByteBuffer) {
    services.counters.update { $0.httpRequests += 1 }
    guard let context else { return }
    if WebSocketUpgrade.isEndpoint(head.uri) { return answerEndpoint(head) }
    guard [.GET, .HEAD, .POST].contains(head.method) else {
      return respond(to: head, HTTPResponse(status: 405, headers: [("allow", "GET, HEAD, POST")]))
    }
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let request = HTTPRequest(
      method: head.method == .HEAD ? "GET" : head.method.rawValue, path: parts.first.map(String.init) ?? "/",
      query: parts.count > 1 ? String(parts[1]) : nil,
      headers: head.headers.map { (name: $0.name, value: $0.value) }, body: body,
      remoteAddress: context.remoteAddress)
    let pages = services.pages
    context.eventLoop.makeFutureWithTask { await pages(request) }
      .assumeIsolated()
      .whenSuccess { [weak self] response in self?.respond(to: head, response) }
  }

  /// A request to a WebSocket's path that has not become one.
  private func answerEndpoint(_ head: HTTPRequestHead) {
    if !WebSocketUpgrade.allowsOrigin(head, services) {
      services.counters.drop(.foreignOrigin)
      return respond(to: head, HTTPResponse(status: 403, text: "pages of this origin may not connect"), isLast: true)
    }
    // The handshake must be the first request of its connection.
    var response = HTTPResponse(status: 426, text: "this is a WebSocket")
    response.headers += [("upgrade", "websocket"), ("sec-websocket-version", "13")]
    respond(to: head, response, isLast: true)
  }

  private func refuse(_ status: HTTPResponseStatus) {
    guard let head = request?.head else { return }
    isDiscarding = true
    respond(to: head, HTTPResponse(status: Int(status.code)), isLast: true)
  }

  private func respond(to head: HTTPRequestHead, _ response: HTTPResponse, isLast: Bool = false) {
    guard let context else { return }
    startTimeout()
    let keepsAlive = head.isKeepAlive && !isLast
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    headers.replaceOrAdd(name: "content-length", value: String(response.body.readableBytes))
    headers.replaceOrAdd(name: "connection", value: keepsAlive ? "keep-alive" : "close")
    let status = HTTPResponseStatus(statusCode: response.status)
    context.write(
      Self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))), promise: nil)
    if head.method != .HEAD {
      context.write(Self.wrapOutboundOut(.body(.byteBuffer(response.body))), promise: nil)
    }
    let done = context.eventLoop.makePromise(of: Void.self)
    done.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      guard let self, !isDiscarding else { return }
      if keepsAlive { startTimeout() } else { self.context?.close(promise: nil) }
    }
    context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: done)
  }

  /// A client that takes too long for a request, for reading the answer, or between two, is let go.
  private func startTimeout() {
    timeout?.cancel()
    timeout = context?.eventLoop.assumeIsolated().scheduleTask(
      in: .nanoseconds(services.configuration.httpTimeout.nanoseconds)
    ) { [weak self] in
      self?.context?.close(promise: nil)
    }
  }
}

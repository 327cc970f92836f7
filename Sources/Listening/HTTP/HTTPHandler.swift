import Logging
import MediaModel
import NIOCore
import NIOHTTP1

/// Answers HTTP requests by the service's routes, and upgrades the connection to a WebSocket at a handshake, which need not be its first
/// request. NIO's pipelining handler before it delivers one request at a time.
final class HTTPHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The request at hand, until its answer is sent.
  struct Current {
    let head: HTTPRequestHead
    /// Counts the connection's requests, so that what belongs to an earlier one is recognized.
    let number: UInt64
    var intake: Intake
    /// Makes the answer of a route that gets the body in parts, or writes a stream; cancelled when the client goes away.
    var task: Task<Void, Never>?
    /// Set while an answer is written part by part.
    var stream: SentStream?

    enum Intake {
      case collecting(ByteBuffer)
      case passing(HTTPBody, PassedBody)
      case complete
    }

    var isComplete: Bool { if case .complete = intake { true } else { false } }
  }

  /// The state of a body that is handed on in parts.
  struct PassedBody {
    /// The time limit starts again after so many bytes, so that a client cannot keep its connection with a byte now and then.
    static let progress = 16 << 10

    let maximum: Int
    var received = 0
    /// Bytes since the time limit started.
    var sinceStart = 0
    /// The client waits to be told whether to send it (RFC 9110 section 10.1.1).
    var awaitsContinue: Bool
  }

  /// An answer that is written part by part.
  struct SentStream {
    /// Bytes that are still to come; nil if the length is not known.
    var left: Int?
    let keepsAlive: Bool
  }

  let service: HTTPService
  /// Handlers that parse requests and write responses; removed when the connection becomes a WebSocket.
  private let codec: [any ChannelHandler & RemovableChannelHandler]
  var current: Current?
  private var lastNumber: UInt64 = 0
  private(set) var context: ChannelHandlerContext?
  private var timeout: Scheduled<Void>?
  var phase = Phase.serving
  /// The one who takes the body's parts is slow.
  private var isPaused = false
  private var isReadHeld = false

  enum Phase {
    case serving
    /// The answer was given before the request was complete; the rest is read and discarded.
    case discarding
    /// Bytes belong to a WebSocket and pass through.
    case upgraded
  }

  private init(service: HTTPService) {
    self.service = service
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 8 << 10
    limits.maxHeaderListSize = 32 << 10
    limits.maxHeaderFieldCount = 100
    // Bytes that follow a handshake are forwarded when the decoder is removed.
    let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits)
    codec = [
      HTTPResponseEncoder(), ByteToMessageHandler(decoder), HTTPServerPipelineHandler(),
      NIOHTTPResponseHeadersValidator(),
    ]
  }

  /// Configures the channel for HTTP.
  static func add(to channel: any Channel, _ service: HTTPService) throws {
    let handler = HTTPHandler(service: service)
    try channel.pipeline.syncOperations.addHandlers(handler.codec)
    try channel.pipeline.syncOperations.addHandler(handler)
  }

  var listeners: Listeners { service.listeners }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    startTimeout()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    stopTimeout()
    forget(.clientGone)
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch phase {
    case .serving: read(Self.unwrapInboundIn(data))
    case .discarding: if case .end = Self.unwrapInboundIn(data) { context.close(promise: nil) }
    case .upgraded: context.fireChannelRead(data)
    }
  }

  func read(context: ChannelHandlerContext) {
    if isPaused { isReadHeld = true } else { context.read() }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if phase == .discarding, event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch phase {
    case .upgraded: context.fireErrorCaught(error)
    // Bytes after something unreadable.
    case .discarding:
      if !(error is ByteToMessageDecoderError || error is HTTPParserError) { context.close(promise: nil) }
    case .serving:
      guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
      listeners.counters.drop(.invalidHTTP)
      listeners.log.log(.httpRequest, .info, "an HTTP request could not be read", ["reason": "\(error)"])
      // An answer has begun: only the connection's end can say that something is wrong.
      guard current?.stream == nil else { return close() }
      forget(error == .invalidEOFState ? .clientGone : .unreadable)
      phase = .discarding
      send(
        to: HTTPRequestHead(version: .http1_1, method: .GET, uri: "/"),
        HTTPResponse(status: 400, text: "this request cannot be read (RFC 9112)"), isLast: true)
      linger()
    }
  }

  // MARK: Requests

  private func read(_ part: HTTPServerRequestPart) {
    switch part {
    case .head(let head): begin(head.inOriginForm)
    case .body(let bytes): take(bytes)
    case .end:
      switch current?.intake {
      case .collecting(let body):
        stopTimeout()
        current?.intake = .complete
        answer(body)
      case .passing(let body, _):
        if current?.stream == nil { stopTimeout() }
        current?.intake = .complete
        resumeReading()
        body.finish()
      case .complete, nil: break
      }
    }
  }

  private func begin(_ head: HTTPRequestHead) {
    lastNumber += 1
    current = Current(head: head, number: lastNumber, intake: .collecting(ByteBuffer()))
    let route = service.webSocket(at: head.uri) == nil ? service.route(for: head.path) : nil
    if let route, case .streamed(let maximum, let respond) = route.answer {
      pass(head, to: route, maximum, respond)
    } else {
      expect(head)
    }
  }

  private func take(_ bytes: ByteBuffer) {
    switch current?.intake {
    case .collecting(var body):
      guard body.readableBytes + bytes.readableBytes <= listeners.configuration.limits.httpBody else {
        return refuse(.payloadTooLarge)
      }
      // The only reference, so that nothing is copied.
      current?.intake = .complete
      body.writeImmutableBuffer(bytes)
      current?.intake = .collecting(body)
    case .passing(let body, var passed):
      passed.received += bytes.readableBytes
      guard passed.received <= passed.maximum else {
        body.fail(.tooLarge)
        return refuse(.payloadTooLarge)
      }
      passed.awaitsContinue = false
      passed.sinceStart += bytes.readableBytes
      let hasProgressed = passed.sinceStart >= PassedBody.progress
      if hasProgressed { passed.sinceStart = 0 }
      current?.intake = .passing(body, passed)
      if body.append(bytes) {
        isPaused = true
        stopTimeout()
      } else if hasProgressed {
        startTimeout()
      }
    case .complete, nil: break
    }
  }

  /// Tells a client that waits with the body whether to send it (RFC 9110 section 10.1.1).
  private func expect(_ head: HTTPRequestHead) {
    guard head.hasExpectation else { return }
    guard head.expectsContinue else { return refuse(.expectationFailed) }
    guard head.announcedLength <= listeners.configuration.limits.httpBody else { return refuse(.payloadTooLarge) }
    sendContinue()
  }

  private func sendContinue() {
    context?.writeAndFlush(
      Self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
  }

  /// Begins a request whose body the route gets in parts.
  private func pass(
    _ head: HTTPRequestHead, to route: Route, _ maximum: Int,
    _ respond: @escaping @Sendable (HTTPRequest, HTTPBody) async -> HTTPResponse
  ) {
    guard let context else { return }
    listeners.counters.update { $0.httpRequests += 1 }
    if let refusal = refusal(of: head, for: route) { return respondNow(refusal) }
    guard !head.hasExpectation || head.expectsContinue else { return refuse(.expectationFailed) }
    guard head.announcedLength <= maximum else { return refuse(.payloadTooLarge) }
    let (number, loop) = (lastNumber, context.eventLoop)
    let handler = NIOLoopBound(self, eventLoop: loop)
    let body = HTTPBody { loop.execute { handler.value.wantPart(of: number) } }
    current?.intake = .passing(body, PassedBody(maximum: maximum, awaitsContinue: head.hasExpectation))
    // While the client waits for us, its time does not run.
    if head.hasExpectation { stopTimeout() } else { startTimeout() }
    let request = request(head, ByteBuffer())
    current?.task = Task {
      let response = await respond(request, body)
      loop.execute { handler.value.respond(to: number, response) }
    }
  }

  /// The route wants another part of the body.
  private func wantPart(of number: UInt64) {
    guard let current, current.number == number, case .passing(let body, var passed) = current.intake else { return }
    // The client's time did not run while it waited for us.
    if isPaused || passed.awaitsContinue { startTimeout() }
    if passed.awaitsContinue {
      passed.awaitsContinue = false
      self.current?.intake = .passing(body, passed)
      // After the head of an answer it would be a part of its body.
      if current.stream == nil { sendContinue() }
    }
    resumeReading()
  }

  func resumeReading() {
    isPaused = false
    guard exchange(&isReadHeld, with: false) else { return }
    context?.read()
  }

  /// The request at hand is over.
  func forget(_ error: HTTPBodyError) {
    guard let current = exchange(&current, with: nil) else { return }
    if case .passing(let body, _) = current.intake { body.fail(error) }
    current.task?.cancel()
  }

  private func answer(_ body: ByteBuffer) {
    guard let context, let head = current?.head else { return }
    listeners.counters.update { $0.httpRequests += 1 }
    if head.hasValidHost, let endpoint = service.webSocket(at: head.uri) {
      if let refusal = WebSocketUpgrade.refusal(of: head, body: body, at: endpoint, listeners) {
        return respondNow(refusal)
      }
      current = nil
      return upgrade(head, to: endpoint)
    }
    let route = service.route(for: head.path)
    if let refusal = refusal(of: head, for: route) { return respondNow(refusal, isLast: refusal.status != 405) }
    guard let route, case .buffered(let respond) = route.answer else {
      return respondNow(HTTPResponse(status: 404, text: "There is no such page.\n"), isLast: false)
    }
    let request = request(head, body)
    let (number, loop) = (lastNumber, context.eventLoop)
    let handler = NIOLoopBound(self, eventLoop: loop)
    // A page finishes its work also when the client has gone.
    Task {
      let response = await respond(request)
      loop.execute { handler.value.respond(to: number, response) }
    }
  }

  /// The answer to a request that is wrong whatever it asks for; nil if the route may have it.
  private func refusal(of head: HTTPRequestHead, for route: Route?) -> HTTPResponse? {
    guard head.hasValidHost else {
      listeners.counters.drop(.invalidHTTP)
      return HTTPResponse(status: 400, text: "one Host header is needed (RFC 9112 section 3.2)")
    }
    let now = context?.eventLoop.now.uptimeNanoseconds ?? 0
    if let wait = listeners.requestRates.take(from: context?.remoteAddress, now: now) {
      listeners.counters.drop(.addressRequestsFull)
      return .tooMany("Too many requests from this address: try again in a moment.\n", wait: wait)
    }
    guard let route, !route.methods.contains(head.method.rawValue) else { return nil }
    return HTTPResponse(status: 405, headers: [("allow", route.methods.joined(separator: ", "))])
  }

  private func request(_ head: HTTPRequestHead, _ body: ByteBuffer) -> HTTPRequest {
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    return HTTPRequest(
      method: head.method == .HEAD ? "GET" : head.method.rawValue, path: head.path,
      query: parts.count > 1 ? String(parts[1]) : nil,
      headers: head.headers.map { (name: $0.name, value: $0.value) }, body: body,
      remoteAddress: context?.remoteAddress)
  }

  // MARK: WebSocket

  private func upgrade(_ head: HTTPRequestHead, to endpoint: WebSocketEndpoint) {
    guard let context else { return }
    WebSocketUpgrade.headers(for: head, to: endpoint, on: context.channel).assumeIsolated().whenComplete {
      [weak self] result in
      guard let self, self.context != nil else { return }
      do {
        try becomeWebSocket(endpoint, headers: result.get())
      } catch {
        self.context?.close(promise: nil)
      }
    }
  }

  private func becomeWebSocket(_ endpoint: WebSocketEndpoint, headers: HTTPHeaders) throws {
    guard let context else { return }
    let response = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    context.writeAndFlush(Self.wrapOutboundOut(.head(response)), promise: nil)
    phase = .upgraded
    try WebSocketUpgrade.addHandlers(to: context.channel, endpoint, listeners)
    // The decoder is removed last and forwards the bytes that it has not parsed. This handler is not needed after that.
    let pipeline = context.pipeline
    EventLoopFuture.andAllComplete(codec.map { pipeline.syncOperations.removeHandler($0) }, on: context.eventLoop)
      .assumeIsolated()
      .whenComplete { [weak self] _ in
        if let self { pipeline.syncOperations.removeHandler(self, promise: nil) }
      }
  }

  // MARK: Time

  /// A client that takes too long for a request, for reading the answer, or between two requests, is disconnected.
  func startTimeout() { close(in: listeners.configuration.httpTimeout) }

  func stopTimeout() { timeout?.cancel() }

  /// Ends the output after the answer, and the connection when the client ends it, too, or later. If the server closed immediately, the kernel would answer
  /// the client's unread bytes with a reset, and the answer could be lost.
  func linger() {
    resumeReading()
    context?.close(mode: .output, promise: nil)
    close(in: listeners.configuration.linger)
  }

  func close() { context?.close(promise: nil) }

  private func close(in time: Duration) {
    timeout?.cancel()
    timeout = context?.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(time.nanoseconds)) { [weak self] in
      self?.context?.close(promise: nil)
    }
  }
}

import Logging
import MediaModel
import NIOCore
import NIOHTTP1

/// Answers HTTP requests by calling the server's `pages`, and upgrades the connection to a WebSocket at a handshake, which need not be its first
/// request. NIO's pipelining handler before it delivers one request at a time.
final class HTTPHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let services: SharedServices
  /// Handlers that parse requests and write responses; removed when the connection becomes a WebSocket.
  private let codec: [any ChannelHandler & RemovableChannelHandler]
  private var request: (head: HTTPRequestHead, body: ByteBuffer)?
  private var context: ChannelHandlerContext?
  private var timeout: Scheduled<Void>?
  private var phase = Phase.serving

  private enum Phase {
    case serving
    /// The answer was given before the request was complete; the rest is read and discarded.
    case discarding
    /// Bytes belong to a WebSocket and pass through.
    case upgraded
  }

  private init(services: SharedServices) {
    self.services = services
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
  static func add(to channel: any Channel, _ services: SharedServices) throws {
    let handler = HTTPHandler(services: services)
    try channel.pipeline.syncOperations.addHandlers(handler.codec)
    try channel.pipeline.syncOperations.addHandler(handler)
  }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    startTimeout()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timeout?.cancel()
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch phase {
    case .serving: read(Self.unwrapInboundIn(data))
    case .discarding: if case .end = Self.unwrapInboundIn(data) { context.close(promise: nil) }
    case .upgraded: context.fireChannelRead(data)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if phase == .discarding, event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  private func read(_ part: HTTPServerRequestPart) {
    switch part {
    case .head(let head):
      request = (head.inOriginForm, ByteBuffer())
      expect(head)
    case .body(var bytes):
      guard let size = request?.body.readableBytes else { return }
      guard size + bytes.readableBytes <= services.configuration.limits.httpBody else {
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
    switch phase {
    case .upgraded: context.fireErrorCaught(error)
    // Bytes after something unreadable.
    case .discarding:
      if !(error is ByteToMessageDecoderError || error is HTTPParserError) { context.close(promise: nil) }
    case .serving:
      guard error is HTTPParserError else { return context.close(promise: nil) }
      services.counters.drop(.invalidHTTP)
      services.log.log(.httpRequest, .info, "an HTTP request could not be read", ["reason": "\(error)"])
      phase = .discarding
      send(
        to: HTTPRequestHead(version: .http1_1, method: .GET, uri: "/"),
        HTTPResponse(status: 400, text: "this request cannot be read (RFC 9112)"), isLast: true)
      linger()
    }
  }

  /// Tells a client that waits with the body whether to send it (RFC 9110 section 10.1.1).
  private func expect(_ head: HTTPRequestHead) {
    let expectations = head.headers[canonicalForm: "expect"]
    guard !expectations.isEmpty, head.version == .http1_1 else { return }
    guard expectations.allSatisfy({ $0.lowercased() == "100-continue" }) else { return refuse(.expectationFailed) }
    let length = head.headers.first(name: "content-length").flatMap(Int.init) ?? 0
    guard length <= services.configuration.limits.httpBody else { return refuse(.payloadTooLarge) }
    context?.writeAndFlush(
      Self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
  }

  // MARK: Answers

  private func answer(_ head: HTTPRequestHead, _ body: ByteBuffer) {
    services.counters.update { $0.httpRequests += 1 }
    guard let context else { return }
    guard head.hasValidHost else {
      services.counters.drop(.invalidHTTP)
      return respond(
        to: head, HTTPResponse(status: 400, text: "one Host header is needed (RFC 9112 section 3.2)"), isLast: true)
    }
    if WebSocketUpgrade.isEndpoint(head.uri) {
      if let refusal = WebSocketUpgrade.refusal(of: head, body: body, services) {
        return respond(to: head, refusal, isLast: true)
      }
      return upgrade(head)
    }
    if let wait = services.pageRates.take(from: context.remoteAddress, now: context.eventLoop.now.uptimeNanoseconds) {
      services.counters.drop(.addressRequestsFull)
      return respond(
        to: head, .tooMany("Too many requests from this address: try again in a moment.\n", wait: wait), isLast: true)
    }
    guard [.GET, .HEAD, .POST, .OPTIONS].contains(head.method) else {
      return respond(to: head, HTTPResponse(status: 405, headers: [("allow", HTTPRequest.methods)]))
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

  /// Logs a refusal with the headers that the client sent, for an operator whose proxy changes them. None of it is personal: `Origin` belongs to a page,
  /// `Host` to this server. Browsers ask every server for files that are not there: 404 leaves no line.
  private func logRefusal(of head: HTTPRequestHead, _ response: HTTPResponse) {
    guard (400..<500).contains(response.status), response.status != 404 else { return }
    func shown(_ name: String) -> Logger.MetadataValue {
      .string(
        String(
          (head.headers.first(name: name) ?? "none").unicodeScalars.prefix(100).map { scalar in
            scalar.isASCII && scalar.value > 0x20 && scalar.value != 0x7f ? Character(scalar) : "?"
          }))
    }
    services.log.log(
      .httpRequest, .info, "an HTTP request was refused",
      [
        "status": "\(response.status)", "method": "\(head.method.rawValue.prefix(20))", "origin": shown("origin"),
        "host": shown("host"),
      ])
  }

  private func refuse(_ status: HTTPResponseStatus) {
    guard let head = request?.head else { return }
    phase = .discarding
    respond(to: head, HTTPResponse(status: Int(status.code)), isLast: true)
    linger()
  }

  private func respond(to head: HTTPRequestHead, _ response: HTTPResponse, isLast: Bool = false) {
    logRefusal(of: head, response)
    send(to: head, response, isLast: isLast)
  }

  private func send(to head: HTTPRequestHead, _ response: HTTPResponse, isLast: Bool) {
    guard let context else { return }
    startTimeout()
    // The parser reads nothing after a request for another protocol, including CONNECT.
    let keepsAlive = head.isKeepAlive && !isLast && !head.isUpgrade && head.method != .CONNECT
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    for (name, value) in services.configuration.securityHeaders where !headers.contains(name: name) {
      headers.add(name: name, value: value)
    }
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
      guard let self, phase == .serving else { return }
      if keepsAlive { startTimeout() } else { self.context?.close(promise: nil) }
    }
    context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: done)
  }

  // MARK: WebSocket

  private func upgrade(_ head: HTTPRequestHead) {
    guard let context else { return }
    WebSocketUpgrade.headers(for: head, on: context.channel).assumeIsolated().whenComplete { [weak self] result in
      guard let self, self.context != nil else { return }
      do {
        try becomeWebSocket(headers: result.get())
      } catch {
        self.context?.close(promise: nil)
      }
    }
  }

  private func becomeWebSocket(headers: HTTPHeaders) throws {
    guard let context else { return }
    let response = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)
    context.writeAndFlush(Self.wrapOutboundOut(.head(response)), promise: nil)
    phase = .upgraded
    try WebSocketUpgrade.addHandlers(to: context.channel, services)
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
  private func startTimeout() {
    timeout?.cancel()
    timeout = context?.eventLoop.assumeIsolated().scheduleTask(
      in: .nanoseconds(services.configuration.httpTimeout.nanoseconds)
    ) { [weak self] in
      self?.context?.close(promise: nil)
    }
  }

  /// Ends the output after the answer, and the connection when the client ends it, too, or later. If the server closed immediately, the kernel would answer
  /// the client's unread bytes with a reset, and the answer could be lost.
  private func linger() {
    context?.close(mode: .output, promise: nil)
    timeout?.cancel()
    timeout = context?.eventLoop.assumeIsolated().scheduleTask(
      in: .nanoseconds(services.configuration.linger.nanoseconds)
    ) { [weak self] in
      self?.context?.close(promise: nil)
    }
  }
}

extension HTTPRequestHead {
  /// A target in absolute form counts as its path, and its authority as the host (RFC 9112 section 3.2.2).
  fileprivate var inOriginForm: HTTPRequestHead {
    let scheme = ["http://", "https://"].first { uri.lowercased().hasPrefix($0) }
    guard let scheme, method != .CONNECT, hasValidHost else { return self }
    let rest = uri.dropFirst(scheme.count)
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    guard end > rest.startIndex else { return self }
    var head = self
    head.headers.replaceOrAdd(name: "host", value: String(rest[..<end]))
    head.uri = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
    return head
  }

  /// Exactly one in HTTP/1.1, at most one before, and a valid one (RFC 9112 section 3.2): a proxy before us and we must not read different
  /// hosts.
  fileprivate var hasValidHost: Bool {
    let hosts = headers["host"]
    guard hosts.count == 1 || hosts.isEmpty && version == .http1_0 else { return false }
    return hosts.allSatisfy { host in
      host.utf8.allSatisfy { character in
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        // RFC 3986 section 3.2.2, without the comma: a comma means that a proxy merged two Host headers.
        default: "-._~%!$&'()*+;=:[]".utf8.contains(character)
        }
      }
    }
  }
}

extension SignalingServer.Configuration {
  /// Security headers of every response, unless the page sets its own. With TLS, browsers are told to use only TLS (RFC 6797).
  fileprivate var securityHeaders: [(name: String, value: String)] {
    let always = [
      (name: "x-content-type-options", value: "nosniff"), (name: "referrer-policy", value: "no-referrer"),
      (name: "content-security-policy", value: "default-src 'none'; frame-ancestors 'none'"),
    ]
    return tls != nil && httpUsesTLS
      ? always + [(name: "strict-transport-security", value: "max-age=31536000")] : always
  }
}

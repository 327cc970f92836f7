import Logging
import NIOCore
import NIOHTTP1

/// Answers out, whole or part by part.
extension HTTPHandler {
  /// A route's answer.
  /// - Parameter number: of the request; nothing is sent if that is over.
  func respond(to number: UInt64, _ response: HTTPResponse) {
    guard phase == .serving, current?.number == number, current?.stream == nil else { return }
    respondNow(response, isLast: false)
  }

  func refuse(_ status: HTTPResponseStatus) {
    // An answer has begun: only the connection's end can say that something is wrong.
    guard current?.stream == nil else { return close() }
    respondNow(HTTPResponse(status: Int(status.code)))
  }

  /// Answers the request at hand.
  func respondNow(_ response: HTTPResponse, isLast: Bool = true) {
    guard let head = current?.head else { return }
    logRefusal(of: head, response)
    send(to: head, response, isLast: isLast)
  }

  /// Logs a refusal with the headers that the client sent, for an operator whose proxy changes them. None of it is personal: `Origin` belongs to a page,
  /// `Host` to this server. Browsers ask every server for files that are not there: 404 leaves no line.
  func logRefusal(of head: HTTPRequestHead, _ response: HTTPResponse) {
    guard (400..<500).contains(response.status), response.status != 404 else { return }
    func shown(_ name: String) -> Logger.MetadataValue {
      .string(
        String(
          (head.headers.first(name: name) ?? "none").unicodeScalars.prefix(100).map { scalar in
            scalar.isASCII && scalar.value > 0x20 && scalar.value != 0x7f ? Character(scalar) : "?"
          }))
    }
    service.listeners.log.log(
      .httpRequest, .info, "an HTTP request was refused",
      [
        "status": "\(response.status)", "method": "\(head.method.rawValue.prefix(20))", "origin": shown("origin"),
        "host": shown("host"),
      ])
  }

  func send(to head: HTTPRequestHead, _ response: HTTPResponse, isLast: Bool) {
    let isEarly = current.map { !$0.isComplete } ?? false
    // The parser reads nothing after a request for another protocol, including CONNECT.
    let keepsAlive = head.isKeepAlive && !isLast && !isEarly && !head.isUpgrade && head.method != .CONNECT
    switch response.body {
    case .whole(let body):
      writeHead(response, length: body.readableBytes, keepsAlive: keepsAlive)
      if head.method != .HEAD { context?.write(Self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
      finish(keepsAlive: keepsAlive)
    case .stream(let stream): send(to: head, response, stream, keepsAlive: keepsAlive)
    }
  }

  /// - Parameter length: of the body; nil if it is sent in chunks, or up to the connection's end.
  private func writeHead(
    _ response: HTTPResponse, length: Int?, keepsAlive: Bool, version: HTTPVersion = .http1_1
  ) {
    startTimeout()
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    for (name, value) in listeners.configuration.securityHeaders where !headers.contains(name: name) {
      headers.add(name: name, value: value)
    }
    if let length {
      headers.replaceOrAdd(name: "content-length", value: String(length))
    } else {
      headers.remove(name: "content-length")
    }
    headers.replaceOrAdd(name: "connection", value: keepsAlive ? "keep-alive" : "close")
    let status = HTTPResponseStatus(statusCode: response.status)
    context?.write(
      Self.wrapOutboundOut(.head(HTTPResponseHead(version: version, status: status, headers: headers))), promise: nil)
  }

  /// Ends the answer. If the request is not complete, its rest is discarded, and then the connection ends.
  private func finish(keepsAlive: Bool) {
    guard let context else { return }
    let isEarly = current.map { !$0.isComplete } ?? false
    if isEarly { phase = .discarding }
    // Before the end is written, because the next request may come meanwhile.
    forget(.answered)
    let done = context.eventLoop.makePromise(of: Void.self)
    done.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      guard let self, phase == .serving else { return }
      guard keepsAlive else { return close() }
      // The time of the next request, if that is here already, is its own.
      if current == nil { startTimeout() }
    }
    context.writeAndFlush(Self.wrapOutboundOut(.end(nil)), promise: done)
    if isEarly { linger() }
  }

  // MARK: Streams

  private func send(to head: HTTPRequestHead, _ response: HTTPResponse, _ stream: HTTPStream, keepsAlive: Bool) {
    guard let context, let number = current?.number else { return }
    let hasBody = head.method != .HEAD && HTTPResponseStatus(statusCode: response.status).mayHaveResponseBody
    // HTTP/1.0 has no chunks, and NIO would end the chunks of an answer to HEAD, which has none.
    let isUpToEnd = stream.length == nil && (head.version == .http1_0 || !hasBody)
    let keepsAlive = keepsAlive && !isUpToEnd
    writeHead(response, length: stream.length, keepsAlive: keepsAlive, version: isUpToEnd ? .http1_0 : .http1_1)
    guard hasBody else { return finish(keepsAlive: keepsAlive) }
    context.flush()
    // Its time runs while a part waits for the client, not while we make one.
    stopTimeout()
    current?.stream = SentStream(left: stream.length, keepsAlive: keepsAlive)
    let loop = context.eventLoop
    let handler = NIOLoopBound(self, eventLoop: loop)
    let writer = HTTPBodyWriter(handler, on: loop, number: number)
    current?.task = Task {
      let isWritten: Bool
      do {
        try await stream.write(writer)
        isWritten = true
      } catch {
        isWritten = false
      }
      loop.execute { handler.value.endStream(of: number, isWritten: isWritten) }
    }
  }

  /// Completes when the kernel has taken the bytes; nil when the client is gone.
  func write(_ part: ByteBuffer, of number: UInt64) -> EventLoopFuture<Void>? {
    guard let context, current?.number == number, let stream = current?.stream else { return nil }
    if let left = stream.left {
      guard part.readableBytes <= left else { return context.eventLoop.makeFailedFuture(HTTPStreamError.tooLong) }
      current?.stream?.left = left - part.readableBytes
    }
    startTimeout()
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { [weak self] _ in
      if self?.current?.number == number { self?.stopTimeout() }
    }
    context.writeAndFlush(Self.wrapOutboundOut(.body(.byteBuffer(part))), promise: written)
    return written.futureResult
  }

  private func endStream(of number: UInt64, isWritten: Bool) {
    guard current?.number == number, let stream = current?.stream else { return }
    // The client sees that the answer is not complete.
    guard isWritten, stream.left ?? 0 == 0 else { return close() }
    startTimeout()
    finish(keepsAlive: stream.keepsAlive)
  }
}

extension ListeningConfiguration {
  /// Security headers of every response, unless the page sets its own. With TLS, browsers are told to use only TLS (RFC 6797).
  var securityHeaders: [(name: String, value: String)] {
    let always = [
      (name: "x-content-type-options", value: "nosniff"), (name: "referrer-policy", value: "no-referrer"),
      (name: "content-security-policy", value: "default-src 'none'; frame-ancestors 'none'"),
    ]
    return tls != nil && httpUsesTLS
      ? always + [(name: "strict-transport-security", value: "max-age=31536000")] : always
  }
}

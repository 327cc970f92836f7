package import NIOCore

/// A request. HEAD is passed on as GET: the answer's body is omitted when it is sent.
package struct HTTPRequest: Sendable {
  /// A route takes these unless it names others.
  package static let methods = ["GET", "HEAD", "POST", "OPTIONS"]

  package var method: String
  /// Without the query.
  package var path: String
  package var query: String?
  package var headers: [(name: String, value: String)]
  /// Empty for a route that gets the body in parts.
  package var body: ByteBuffer
  package var remoteAddress: SocketAddress?

  package init(
    method: String, path: String, query: String?, headers: [(name: String, value: String)], body: ByteBuffer,
    remoteAddress: SocketAddress?
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
    self.remoteAddress = remoteAddress
  }

  /// The value of the first header with this name, ignoring case.
  package subscript(header name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// Whether the request comes from this machine, and not through a proxy on it.
  package var isFromLoopback: Bool {
    let isProxied = headers.contains { header in
      let name = header.name.lowercased()
      return ["forwarded", "via", "x-real-ip"].contains(name) || name.hasPrefix("x-forwarded-")
    }
    guard !isProxied else { return false }
    return remoteAddress?.isLoopback ?? false
  }
}

extension SocketAddress {
  /// 127.0.0.0/8, ::1, and the former as IPv4-mapped addresses.
  var isLoopback: Bool {
    guard let text = ipAddress else { return false }
    return text == "::1" || text.hasPrefix("127.") || text.hasPrefix("::ffff:127.")
  }
}

/// The answer to an `HTTPRequest`; `content-length` and `connection` are added when it is sent.
package struct HTTPResponse: Sendable {
  package enum Body: Sendable {
    case whole(ByteBuffer)
    /// Written part by part, as the client reads it.
    case stream(HTTPStream)

    /// The bytes of a body that is not a stream.
    package var bytes: ByteBuffer {
      switch self {
      case .whole(let bytes): bytes
      case .stream: ByteBuffer()
      }
    }
  }

  package var status: Int
  package var headers: [(name: String, value: String)]
  package var body: Body

  package init(status: Int = 200, headers: [(name: String, value: String)] = [], body: ByteBuffer = ByteBuffer()) {
    self.status = status
    self.headers = headers
    self.body = .whole(body)
  }

  package init(status: Int = 200, headers: [(name: String, value: String)] = [], stream: HTTPStream) {
    self.status = status
    self.headers = headers
    body = .stream(stream)
  }

  package init(status: Int = 200, text: String) {
    self.init(
      status: status, headers: [("content-type", "text/plain; charset=utf-8")], body: ByteBuffer(string: text))
  }
}

/// A body that is made while it is sent.
package struct HTTPStream: Sendable {
  /// In bytes. nil if it is not known: the body is then sent in chunks (RFC 9112 section 7.1), and to HTTP/1.0 up to the connection's end.
  let length: Int?
  let write: @Sendable (HTTPBodyWriter) async throws -> Void

  /// - Parameter write: writes the body; its task is cancelled when the client goes away. If it throws, or writes another number of bytes than `length`, the
  ///   connection is closed, so that the client sees that the body is not complete.
  package init(length: Int?, write: @escaping @Sendable (HTTPBodyWriter) async throws -> Void) {
    self.length = length
    self.write = write
  }
}

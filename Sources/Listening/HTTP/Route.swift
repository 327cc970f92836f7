/// An answerer of the HTTP requests for some paths.
package struct Route: Sendable {
  package enum Paths: Sendable {
    case exactly(Set<String>)
    /// All paths that begin with this prefix.
    case under(String)
    case all
  }

  enum Answer: Sendable {
    case buffered(@Sendable (HTTPRequest) async -> HTTPResponse)
    case streamed(maximumBody: Int, @Sendable (HTTPRequest, HTTPBody) async -> HTTPResponse)
  }

  let paths: Paths
  /// As `Allow` lists them. HEAD is passed on as GET.
  let methods: [String]
  let answer: Answer

  /// Gets each request with its whole body, of `ListeningLimits.httpBody` bytes at most.
  package init(
    _ paths: Paths, methods: [String] = HTTPRequest.methods,
    respond: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
  ) {
    self.paths = paths
    self.methods = methods
    answer = .buffered(respond)
  }

  /// Gets each request when its head has arrived, and the body part by part. The client is read only as fast as the parts are taken, and told to continue
  /// (RFC 9110 section 10.1.1) when the first one is asked for. An answer that comes before the end of the body closes the connection.
  /// - Parameters:
  ///   - maximumBody: in bytes. A longer body is refused with 413, and the sequence throws.
  ///   - respond: its task is cancelled when the client goes away.
  package init(
    _ paths: Paths, methods: [String], maximumBody: Int,
    respond: @escaping @Sendable (HTTPRequest, HTTPBody) async -> HTTPResponse
  ) {
    self.paths = paths
    self.methods = methods
    answer = .streamed(maximumBody: maximumBody, respond)
  }

  func serves(_ path: String) -> Bool {
    switch paths {
    case .exactly(let names): names.contains(path)
    case .under(let prefix): path.hasPrefix(prefix)
    case .all: true
    }
  }
}

/// The parts that the connections of the HTTP port share.
struct HTTPService: Sendable {
  let listeners: Listeners
  private let webSockets: [String: WebSocketEndpoint]
  private let routes: [Route]

  /// - Parameter routes: the first one that serves a path answers.
  init(listeners: Listeners, webSockets: [WebSocketEndpoint], routes: [Route]) {
    self.listeners = listeners
    self.routes = routes
    let served = webSockets.flatMap { endpoint in endpoint.paths.map { ($0, endpoint) } }
    self.webSockets = Dictionary(served) { first, _ in first }
  }

  /// - Parameter uri: with its query.
  func webSocket(at uri: String) -> WebSocketEndpoint? { webSockets[String(uri.prefix { $0 != "?" })] }

  func route(for path: String) -> Route? { routes.first { $0.serves(path) } }
}

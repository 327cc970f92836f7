import Foundation
package import LinuxIO
package import MediaModel

/// Requests to other servers over HTTP and HTTPS, by libcurl. One thread drives all of a client's transfers.
///
/// Redirects are not followed, and no proxy, cookie or password comes from the environment. Certificates are checked against the system's authorities.
/// Connections are reused while they are open. When the other side has closed a reused connection before it answered, libcurl sends the request again over a
/// new one, so a request may arrive twice. A request over a connection of its own arrives once at most.
package final class HTTPClient: Sendable {
  package struct Request: Sendable {
    package enum Connection: Sendable {
      /// A connection that other requests of the client use before or after, HTTP/2 where the server offers it.
      case shared
      /// A new one for this request, HTTP/1.1, only to addresses for which the function returns true. It is called on the client's thread with each address
      /// of the host before libcurl connects to exactly that address.
      case own(to: @Sendable (SocketAddress) -> Bool)
    }

    package var url: String
    /// The content of a POST; nil for a GET.
    package var body: [UInt8]?
    /// Names and values. "content-type" belongs to each POST.
    package var headers: [(name: String, value: String)]
    /// For everything from the lookup of the name to the last byte of the answer.
    package var timeout: Duration
    /// The largest body of an answer that is accepted, in bytes. With 0 the answer is complete with its head.
    package var maximumBody: Int
    package var connection: Connection

    package init(
      url: String, body: [UInt8]? = nil, headers: [(name: String, value: String)] = [], timeout: Duration,
      maximumBody: Int, connection: Connection = .shared
    ) {
      self.url = url
      self.body = body
      self.headers = headers
      self.timeout = timeout
      self.maximumBody = maximumBody
      self.connection = connection
    }
  }

  package struct Response: Sendable {
    package var status: Int
    package var body: [UInt8]
    /// `Retry-After` in seconds, as the server wrote it; nil if it did not.
    package var retryAfter: Int64?
  }

  /// Why there is no response. The descriptions name no URL and nothing of a message.
  package enum Failure: Error, Equatable, CustomStringConvertible {
    case timeout
    /// The host has only addresses that the request does not allow.
    case address
    /// The answer's body has more than this number of bytes.
    case tooLong(Int)
    /// No address, no connection, no TLS, or no readable answer, in libcurl's words.
    case unreachable(String)
    /// The client has as many requests under way as it takes.
    case full
    /// The task was cancelled.
    case cancelled
    /// The client was stopped.
    case stopped

    package var description: String {
      switch self {
      case .timeout: "there was no whole answer in time"
      case .address: "the host has no address to which connections are allowed"
      case .tooLong(let limit): "the answer has more than \(limit) bytes"
      case .unreachable(let reason): reason
      case .full: "too many requests are under way"
      case .cancelled: "the request was cancelled"
      case .stopped: "the client has been stopped"
      }
    }
  }

  /// Requests that a client takes at once. Those beyond the connections of their host wait for one, within their time.
  static let maximumRequests = 4_096

  private let queue: ExchangeQueue
  private let thread: OSThread

  /// - Parameters:
  ///   - hostConnections: the most connections to one host and port at once.
  ///   - trust: a PEM file of authorities that are trusted in addition to the system's.
  /// - Throws: `SystemError` if there is no thread or descriptor, or the file cannot be read.
  package init(hostConnections: Int = 8, trust: String? = nil) throws(SystemError) {
    var additional: [UInt8]?
    if let trust {
      guard let bytes = FileManager.default.contents(atPath: trust) else {
        throw SystemError("read \(trust)", code: errno)
      }
      additional = Array(bytes)
    }
    let queue = try ExchangeQueue(limit: Self.maximumRequests)
    self.queue = queue
    thread = try OSThread(name: "http") { [additional] in
      if var loop = TransferLoop(queue, hostConnections: hostConnections, trust: additional) { return loop.run() }
      // Without memory for a loop, no request has an answer.
      queue.stop()
      for exchange in queue.take().added { exchange.finish(.failure(.stopped)) }
    }
  }

  deinit { stop() }

  /// Sends the request and waits for the answer, whatever its status is.
  package func send(_ request: Request) async throws(Failure) -> Response {
    let exchange = Exchange(request, deadline: MonotonicClock.now().advanced(by: request.timeout))
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard exchange.begin(continuation) else { return }
        do throws(Failure) { try queue.add(exchange) } catch { exchange.finish(.failure(error)) }
      }
    } onCancel: {
      exchange.finish(.failure(.cancelled))
      queue.end(exchange)
    }
    return try result.get()
  }

  /// Ends all requests with `.stopped` and closes the connections. Returns immediately; may be called repeatedly.
  package func stop() { queue.stop() }
}

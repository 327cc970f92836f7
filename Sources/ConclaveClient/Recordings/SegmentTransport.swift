/// Carries a `SegmentUploader`'s requests to the server: `RecordingHTTP`, or the app's own HTTP client, for example one that goes on in the background.
public protocol SegmentTransport: Sendable {
  /// Sends a request and returns its answer; nil if there was none in time. It adds nothing to the request, follows no redirect, and may repeat it: each of
  /// them may arrive twice.
  func send(_ request: SegmentRequest) async -> SegmentAnswer?
}

/// A request about a recording's files (protocol section 13.5).
public struct SegmentRequest: Sendable, Hashable {
  /// The request's method.
  public enum Method: String, Sendable, Hashable { case get = "GET", put = "PUT" }

  /// The request's method.
  public var method: Method
  /// The path, from the server's root on: `/recordings/…`.
  public var path: String
  /// The token or ticket behind `Authorization: Bearer`. Secret.
  public var bearer: String
  /// The value of the header `Conclave-Witness` of a `PUT`.
  public var witness: String?
  /// The body of a `PUT`.
  public var body: [UInt8]

  /// A request from its parts.
  public init(_ method: Method, _ path: String, bearer: String, witness: String? = nil, body: [UInt8] = []) {
    self.method = method
    self.path = path
    self.bearer = bearer
    self.witness = witness
    self.body = body
  }
}

/// The server's answer.
public struct SegmentAnswer: Sendable, Hashable {
  /// The HTTP status.
  public var status: Int
  /// The seconds of `Retry-After`; 0 if there is no such header.
  public var retryAfter: Int
  /// The body.
  public var body: [UInt8]

  /// An answer from its parts.
  public init(status: Int, retryAfter: Int = 0, body: [UInt8] = []) {
    self.status = status
    self.retryAfter = retryAfter
    self.body = body
  }
}

import AsyncHTTPClient
import Cryptography
import MediaModel
import NIOCore
import NIOHTTP1

/// POSTs JSON to the app's back end, signed as in protocol section 11.
struct SignedRequests: Sendable {
  let client: HTTPClient
  let url: String
  let secret: [UInt8]
  let clock: WallClock

  struct Answer: Sendable {
    var status: Int
    var body: [UInt8]
  }

  /// - Parameters:
  ///   - headers: in addition to those of the signature.
  ///   - limit: bytes of the answer's body that are read; 0 for none.
  /// - Throws: the reason why there is no answer after `timeout`.
  func post(
    _ body: [UInt8], headers: [(String, String)], timeout: Duration, answer limit: Int
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    request.headers.add(name: "content-type", value: "application/json")
    request.headers.add(
      name: "conclave-signature", value: Self.signature(of: body, secret: secret, at: clock.machineTime()))
    request.body = .bytes(ByteBuffer(bytes: body))
    return try await within(timeout) { [client, request] in
      let response = try await client.execute(request, timeout: .nanoseconds(timeout.nanoseconds))
      guard limit > 0 else { return Answer(status: Int(response.status.code), body: []) }
      return Answer(
        status: Int(response.status.code), body: Array(buffer: try await response.body.collect(upTo: limit)))
    }
  }

  /// `t=<unix s>,v1=<hex HMAC-SHA-256(secret, t "." body)>`.
  static func signature(of body: [UInt8], secret: [UInt8], at time: Timestamp) -> String {
    let seconds = time.milliseconds / 1000
    let code = HashAlgorithm.sha256.authenticationCode(
      of: Array("\(seconds).".utf8) + body, key: SecretKey(secret))
    let digits = Array("0123456789abcdef".utf8)
    let hex = code.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return "t=\(seconds),v1=\(String(decoding: hex, as: UTF8.self))"
  }
}

extension HTTPClient {
  /// Redirects are not followed, because the signature is for one URL.
  static func forBackEnd(_ group: any EventLoopGroup) -> HTTPClient {
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(5), read: .seconds(10)))
    // A connection that cannot be made is an immediate failure: retries are decided here.
    configuration.connectionPool.retryConnectionEstablishment = false
    return HTTPClient(eventLoopGroupProvider: .shared(group), configuration: configuration)
  }
}

import Cryptography
import MediaModel
import OutboundHTTP

/// POSTs JSON to the app's back end, signed as in protocol section 11.
struct SignedRequests: Sendable {
  let client: HTTPClient
  let url: String
  let secret: [UInt8]
  let clock: WallClock

  /// - Parameters:
  ///   - headers: in addition to those of the signature.
  ///   - limit: the largest body of an answer, in bytes; 0 if only its status counts.
  /// - Throws: the reason why there is no answer after `timeout`.
  func post(
    _ body: [UInt8], headers: [(String, String)], timeout: Duration, answer limit: Int
  ) async throws(HTTPClient.Failure) -> HTTPClient.Response {
    let signature = Self.signature(of: body, secret: secret, at: clock.machineTime())
    return try await client.send(
      HTTPClient.Request(
        url: url, body: body,
        headers: headers + [("content-type", "application/json"), ("conclave-signature", signature)],
        timeout: timeout, maximumBody: limit))
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

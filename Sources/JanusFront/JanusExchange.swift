import JSON
import JanusAPI
import Listening
import NIOCore

/// One HTTP request: a request of the API, or a poll for a session's events.
struct JanusExchange: Sendable {
  private let services: JanusServices
  private let request: HTTPRequest
  private let number: UInt64

  init(_ services: JanusServices, _ request: HTTPRequest) {
    self.services = services
    self.request = request
    number = services.clients.nextNumber()
  }

  private var requester: Requester { .exchange(number) }

  func answer(_ body: HTTPBody) async -> HTTPResponse {
    let response: HTTPResponse
    switch request.method {
    case "OPTIONS": response = HTTPResponse(status: 204)
    case "POST": response = await post(body)
    default: response = await get()
    }
    return withOrigin(response)
  }

  // MARK: Requests

  private func post(_ body: HTTPBody) async -> HTTPResponse {
    guard let path = path else { return HTTPResponse(status: 404) }
    var bytes = ByteBuffer()
    do {
      for try await part in body { bytes.writeImmutableBuffer(part) }
    } catch {
      return HTTPResponse(status: 413)
    }
    let value: JSONTree
    do {
      value = try JSONTree(reading: bytes)
    } catch {
      return await reply { .unreadable($0, reason: "Invalid JSON: \(error.reason)") }
    }
    let grant = await services.judge.grant(for: value.secrets)
    return await reply { .request(JanusRequest(from: $0, path: path, value: value, grant: grant)) }
  }

  private func get() async -> HTTPResponse {
    if request.path == "/janus/info" {
      return await reply {
        .request(JanusRequest(from: $0, path: .root, value: ["janus": "info", "transaction": "info"]))
      }
    }
    guard case .session(let session) = path else { return HTTPResponse(status: 404) }
    let query = Query(request.query ?? "")
    let secrets = JanusSecrets(apiSecret: query["apisecret"], token: query["token"], bodyToken: nil)
    let grant = await services.judge.grant(for: secrets)
    let maximum = query["maxev"].flatMap { Int($0) }.map { min(max(1, $0), 100) }
    return await reply { _ in .poll(exchange: number, session: session, maximum: maximum, grant) }
  }

  /// Submits a command, and waits for the message that answers it.
  private func reply(_ command: (Requester) -> JanusCommand) async -> HTTPResponse {
    let (messages, continuation) = AsyncStream.makeStream(of: JSONTree.self)
    services.clients.add(requester) { message in
      continuation.yield(message)
      continuation.finish()
    }
    services.sink.submit(command(requester))
    for await message in messages {
      return HTTPResponse(headers: [("content-type", "application/json")], body: message.written)
    }
    // The client went away.
    services.clients.remove(requester)
    services.sink.submit(.exchangeEnded(number))
    return HTTPResponse(status: 503)
  }

  /// `/janus`, `/janus/SESSION` or `/janus/SESSION/HANDLE`.
  private var path: JanusRequest.Path? {
    let words = request.path.split(separator: "/").dropFirst()
    let numbers = words.compactMap { UInt64($0) }
    guard numbers.count == words.count, request.path.split(separator: "/").first == "janus" else { return nil }
    return switch numbers.count {
    case 0: .root
    case 1: .session(numbers[0])
    case 2: .handle(numbers[0], numbers[1])
    default: nil
    }
  }

  // MARK: Other origins

  /// Lets pages read the answer whose origin the configuration names.
  private func withOrigin(_ response: HTTPResponse) -> HTTPResponse {
    guard let origin = request[header: "origin"], services.listeners.configuration.origins.names(origin) else {
      return response
    }
    var response = response
    response.headers += [("access-control-allow-origin", origin), ("vary", "origin")]
    if request.method == "OPTIONS" {
      response.headers += [
        ("access-control-allow-methods", "GET, POST"), ("access-control-allow-headers", "content-type"),
        ("access-control-max-age", "86400"),
      ]
    }
    return response
  }
}

/// The members of a query, with percent-encoding undone.
private struct Query {
  private var values: [String: String] = [:]

  init(_ text: String) {
    for pair in text.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      values[Self.decoded(parts[0])] = Self.decoded(parts[1])
    }
  }

  subscript(name: String) -> String? { values[name] }

  private static func decoded(_ text: Substring) -> String {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

import JSON
import MediaModel
import OutboundHTTP
import Synchronization

/// A session with Janus over its HTTP API (https://janus.conf.meetecho.com/docs/rest.html). One long poll returns the
/// events of all its handles.
final class JanusSession: Sendable {
  struct Failure: Error, CustomStringConvertible { var description: String }

  /// An answer or an event, as far as the load test reads it.
  struct Message: Sendable, Decodable {
    struct Identifier: Sendable, Decodable { var id: UInt64 }
    struct Problem: Sendable, Decodable { var reason: String }
    struct Description: Sendable, Codable {
      var type: String
      var sdp: String
    }
    struct Plugin: Sendable, Decodable { var data: VideoRoom }
    struct VideoRoom: Sendable, Decodable {
      var error: String?
      var streams: [Stream]?
    }
    /// A stream that the server sends.
    struct Stream: Sendable, Decodable {
      var mid: String
      var feed: UInt64?
      var feedMid: String?

      private enum CodingKeys: String, CodingKey {
        case mid
        case feed = "feed_id"
        case feedMid = "feed_mid"
      }
    }

    var janus: String
    var transaction: String?
    var data: Identifier?
    var error: Problem?
    var plugindata: Plugin?
    var jsep: Description?
  }

  private struct Request<Body: Encodable>: Encodable {
    var janus: String
    var transaction: String
    var plugin: String?
    var body: Body?
    var jsep: Message.Description?
    var candidate: [String: Bool]?
  }

  private struct Nothing: Encodable {}

  private let url: String
  private let client: HTTPClient
  private let state = Mutex(State())

  private struct State {
    var lastTransaction = 0
    var waiting: [String: CheckedContinuation<Message, any Error>] = [:]
    var poll: Task<Void, Never>?
  }

  private static let answerTime = Duration.seconds(10)
  /// Janus answers a poll without events after 30 s.
  private static let pollTime = Duration.seconds(40)
  private static let largestAnswer = 4 << 20

  /// - Parameter url: of the API, as `http://127.0.0.1:8088/janus`.
  /// - Throws: `Failure` where no Janus answers.
  static func open(_ url: String) async throws -> JanusSession {
    let client = try HTTPClient()
    do {
      let request = Request<Nothing>(janus: "create", transaction: "create")
      let answer = try await post(JSONCoding.encode(request), to: url, client)
      guard let id = answer.data?.id else { throw Failure(description: "\(url): it makes no session") }
      return JanusSession("\(url)/\(id)", client)
    } catch {
      client.stop()
      throw Failure(
        description:
          "\(url) does not answer as Janus does: \(error). Check --url, and that Janus's HTTP transport is on")
    }
  }

  private init(_ url: String, _ client: HTTPClient) {
    self.url = url
    self.client = client
    let poll = Task { [weak self] in
      while !Task.isCancelled, let self { await self.poll() }
    }
    state.withLock { $0.poll = poll }
  }

  func close() async {
    state.withLock { $0.poll }?.cancel()
    _ = try? await post(JSONCoding.encode(Request<Nothing>(janus: "destroy", transaction: transaction())))
    client.stop()
    fail(CancellationError())
  }

  /// A new handle of the plugin.
  func attach() async throws -> UInt64 {
    let request = Request<Nothing>(janus: "attach", transaction: transaction(), plugin: "janus.plugin.videoroom")
    guard let id = try await post(JSONCoding.encode(request)).data?.id else {
      throw Failure(description: "Janus has no VideoRoom plugin; install or enable it")
    }
    return id
  }

  /// Sends a request to the plugin.
  /// - Returns: its answer, which may come as an event.
  func ask(_ handle: UInt64, _ body: some Encodable, _ description: Message.Description? = nil) async throws -> Message
  {
    let transaction = transaction()
    let request = try JSONCoding.encode(
      Request(janus: "message", transaction: transaction, body: body, jsep: description))
    let answer = try await withCheckedThrowingContinuation { continuation in
      state.withLock { $0.waiting[transaction] = continuation }
      Task {
        do {
          let first = try await post(request, handle: handle)
          if first.janus != "ack" { return resume(transaction, with: first) }
          try await Task.sleep(for: Self.answerTime)
          throw Failure(description: "Janus acknowledged a request and did not answer it in \(Self.answerTime)")
        } catch {
          state.withLock { $0.waiting.removeValue(forKey: transaction) }?.resume(throwing: error)
        }
      }
    }
    if let problem = answer.plugindata?.data.error { throw Failure(description: "Janus refused: \(problem)") }
    return answer
  }

  /// Signals the end of candidates: the server learns this side's address from its checks.
  func endCandidates(_ handle: UInt64) async throws {
    let request = Request<Nothing>(janus: "trickle", transaction: transaction(), candidate: ["completed": true])
    _ = try await post(JSONCoding.encode(request), handle: handle)
  }

  private func transaction() -> String {
    state.withLock {
      $0.lastTransaction += 1
      return "\($0.lastTransaction)"
    }
  }

  private func post(_ body: [UInt8], handle: UInt64? = nil) async throws -> Message {
    try await Self.post(body, to: handle.map { "\(url)/\($0)" } ?? url, client)
  }

  private static func post(_ body: [UInt8], to url: String, _ client: HTTPClient) async throws -> Message {
    let request = HTTPClient.Request(
      url: url, body: body, headers: [("content-type", "application/json")], timeout: answerTime,
      maximumBody: largestAnswer)
    let answer = try JSONCoding.decode(Message.self, from: try await client.send(request).body)
    if let problem = answer.error { throw Failure(description: "Janus refused: \(problem.reason)") }
    return answer
  }

  private func poll() async {
    do {
      let request = HTTPClient.Request(
        url: "\(url)?maxev=100", timeout: Self.pollTime, maximumBody: Self.largestAnswer)
      for event in try JSONCoding.decode([Message].self, from: try await client.send(request).body) {
        if let transaction = event.transaction { resume(transaction, with: event) }
      }
    } catch {
      fail(error)
      try? await Task.sleep(for: .milliseconds(100))
    }
  }

  private func resume(_ transaction: String, with answer: Message) {
    state.withLock { $0.waiting.removeValue(forKey: transaction) }?.resume(returning: answer)
  }

  /// No event will answer the waiting requests.
  private func fail(_ error: any Error) {
    let waiting = state.withLock { state in
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for continuation in waiting { continuation.resume(throwing: error) }
  }
}

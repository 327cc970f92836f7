import Calls
import Contract
import JSON
import LinuxIO
import MediaModel
import NIOCore
import OutboundHTTP
import Synchronization

/// Sends the waiting posts of a `WebhookQueue`, as many at once as it allows, and again after failures.
final class Webhooks: Sendable {
  struct Statistics {
    var delivered: UInt64 = 0
    var failed: UInt64 = 0
    var waiting = 0
    var drops: [WebhookQueue.Drop: UInt64] = [:]
  }

  private struct State {
    var queue = WebhookQueue()
    var timer: (deadline: Instant, task: Scheduled<Void>)?
    var delivered: UInt64 = 0
    var failed: UInt64 = 0
  }

  private static let timeout = Duration.seconds(10)

  private let requests: SignedRequests
  /// nil for all.
  private let wanted: Set<String>?
  private let loop: any EventLoop
  private let state = Mutex(State())

  /// - Parameter events: names of the wanted events; empty for all.
  init(_ requests: SignedRequests, events: [String], loop: any EventLoop) {
    self.requests = requests
    wanted = events.isEmpty ? nil : Set(events)
    self.loop = loop
  }

  var statistics: Statistics {
    state.withLock {
      Statistics(delivered: $0.delivered, failed: $0.failed, waiting: $0.queue.count, drops: $0.queue.drops)
    }
  }

  /// - Parameter traceparent: the header of this name.
  func send(_ event: EventMessage, traceparent: String? = nil) {
    let name = event.body.name.rawValue
    guard wanted?.contains(name) != false else { return }
    guard let body = try? JSONCoding.encode(WebhookBody(event: event)) else {
      return state.withLock { $0.queue.drop(.unencodable) }
    }
    let id = String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
    let post = WebhookQueue.Post(
      id: id, line: event.call?.text ?? "", event: name, body: body, traceparent: traceparent)
    state.withLock { $0.queue.add(post, now: MonotonicClock.now()) }
    pump()
  }

  /// Starts all posts that may be sent, and wakes for the next retry.
  private func pump() {
    let posts = state.withLock { state -> [WebhookQueue.Post] in
      var posts: [WebhookQueue.Post] = []
      while let post = state.queue.next(now: MonotonicClock.now()) { posts.append(post) }
      schedule(&state)
      return posts
    }
    for post in posts { Task { await self.deliver(post) } }
  }

  private func schedule(_ state: inout State) {
    guard let deadline = state.queue.deadline, deadline != state.timer?.deadline else { return }
    state.timer?.task.cancel()
    let delay = TimeAmount.nanoseconds(max(0, MonotonicClock.now().duration(to: deadline).nanoseconds))
    state.timer = (deadline, loop.scheduleTask(in: delay) { [weak self] in self?.wake() })
  }

  private func wake() {
    state.withLock { $0.timer = nil }
    pump()
  }

  private func deliver(_ post: WebhookQueue.Post) async {
    var headers = [("conclave-id", post.id), ("conclave-event", post.event)]
    if let traceparent = post.traceparent { headers.append(("traceparent", traceparent)) }
    let answer = try? await requests.post(post.body, headers: headers, timeout: Self.timeout, answer: 0)
    let response = Self.response(answer?.status)
    state.withLock { state in
      if response == .delivered { state.delivered &+= 1 } else { state.failed &+= 1 }
      state.queue.finished(post, response, now: MonotonicClock.now(), jitter: .random(in: 0...1))
    }
    pump()
  }

  /// 2xx is accepted; 408, 425, 429 and 5xx ask for a retry; with anything else a retry is useless.
  static func response(_ status: Int?) -> WebhookQueue.Response {
    switch status {
    case .some(200..<300): .delivered
    case nil, .some(408), .some(425), .some(429), .some(500...): .failed
    case .some: .refused
    }
  }
}

/// The event with its name, which elsewhere is a header.
struct WebhookBody: Encodable {
  var event: EventMessage

  private enum CodingKeys: String, CodingKey { case event }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(event.body.name, forKey: .event)
    try event.encode(to: encoder)
  }
}

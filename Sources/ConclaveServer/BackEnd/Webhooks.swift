import CallMessages
import Contract
import JSON
import LinuxIO
import MediaModel
import NIOCore
import OutboundHTTP

/// Posts events to the app's back end, by a `WebhookQueue`.
final class Webhooks: Sendable {
  struct Statistics {
    var delivered: UInt64 = 0
    var failed: UInt64 = 0
    var waiting = 0
    var drops: [WebhookQueue.Drop: UInt64] = [:]
  }

  private static let timeout = Duration.seconds(10)

  /// nil for all.
  private let wanted: Set<String>?
  private let sender: RetrySender<WebhookQueue>

  /// - Parameter events: names of the wanted events; empty for all.
  init(_ requests: SignedRequests, events: [String], loop: any EventLoop) {
    wanted = events.isEmpty ? nil : Set(events)
    sender = RetrySender(WebhookQueue(), clock: MonotonicClock.now, on: loop) { post in
      var headers = [("conclave-id", post.id), ("conclave-event", post.event)]
      if let traceparent = post.traceparent { headers.append(("traceparent", traceparent)) }
      let answer = try? await requests.post(post.body, headers: headers, timeout: Self.timeout, answer: 0)
      return Self.response(answer?.status)
    }
  }

  var statistics: Statistics {
    let queue = sender.queue
    return Statistics(
      delivered: queue.delivered, failed: queue.failed, waiting: queue.count, drops: queue.drops)
  }

  /// - Parameter traceparent: the header of this name.
  func send(_ event: EventMessage, traceparent: String? = nil) {
    let name = event.body.name.rawValue
    guard wanted?.contains(name) != false else { return }
    guard let body = try? JSONCoding.encode(WebhookBody(event: event)) else {
      return sender.update { queue, _ in queue.drop(.unencodable) }
    }
    let id = String(UInt64.random(in: .min ... .max), radix: 16) + String(UInt64.random(in: .min ... .max), radix: 16)
    let post = WebhookQueue.Post(
      id: id, line: event.line, event: name, body: body, traceparent: traceparent)
    sender.update { $0.add(post, now: $1) }
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

extension EventMessage {
  /// The call or recording that it is about: its events are posted in order.
  fileprivate var line: String {
    if let call { return call.text }
    return switch body {
    case .pushMessage(let push), .pushAlert(let push): push.recording.text
    case .recordingReached(let mention): mention.recording.text
    default: ""
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

import Foundation
import JSON
import LinuxIO
import MediaModel
import NIOCore
import OutboundHTTP
import Synchronization

/// Sends the waiting spans of a `SpanQueue` to an OpenTelemetry collector (OTLP over HTTP, as JSON).
final class SpanExporter: Sendable {
  struct Statistics {
    var waiting = 0
    var sent: UInt64 = 0
    var failed: UInt64 = 0
    var drops: [SpanQueue.Drop: UInt64] = [:]
  }

  private struct State {
    var queue = SpanQueue()
    var timer: (deadline: Instant, task: Scheduled<Void>)?
    var sent: UInt64 = 0
    var failed: UInt64 = 0
  }

  private static let timeout = Duration.seconds(10)
  /// The longest time for which the end of the server waits for the collector.
  private static let farewell = Duration.seconds(2)

  private let client: HTTPClient
  private let url: String
  private let loop: any EventLoop
  private let state = Mutex(State())

  /// - Throws: `ConfigurationError` if there is no thread.
  init(_ configuration: Configuration.Telemetry, group: any EventLoopGroup) throws(ConfigurationError) {
    do throws(SystemError) { client = try HTTPClient() } catch { throw ConfigurationError("telemetry: \(error)") }
    url = configuration.traces
    loop = group.next()
  }

  var statistics: Statistics {
    state.withLock {
      Statistics(waiting: $0.queue.count, sent: $0.sent, failed: $0.failed, drops: $0.queue.drops)
    }
  }

  /// Returns immediately.
  func add(_ spans: [Span]) {
    guard !spans.isEmpty else { return }
    state.withLock { $0.queue.add(spans, now: MonotonicClock.now()) }
    pump()
  }

  /// Sends the rest, for at most a moment.
  func stop() async {
    let end = MonotonicClock.now().advanced(by: Self.farewell)
    let batches = state.withLock { state in
      state.timer?.task.cancel()
      return state.queue.drain()
    }
    for batch in batches {
      let left = MonotonicClock.now().duration(to: end)
      guard left > .zero, case .delivered = await post(batch, timeout: left) else { break }
    }
    client.stop()
  }

  private func pump() {
    let spans = state.withLock { state -> [Span]? in
      let spans = state.queue.next(now: MonotonicClock.now())
      schedule(&state)
      return spans
    }
    guard let spans else { return }
    Task {
      let response = await post(spans, timeout: Self.timeout)
      state.withLock { state in
        if case .delivered = response { state.sent &+= UInt64(spans.count) } else { state.failed &+= 1 }
        state.queue.finished(response, now: MonotonicClock.now(), jitter: .random(in: 0...1))
      }
      pump()
    }
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

  private func post(_ spans: [Span], timeout: Duration) async -> SpanQueue.Response {
    guard let body = try? JSONCoding.encode(SpanBatch(spans)) else { return .refused }
    let request = HTTPClient.Request(
      url: url, body: body, headers: [("content-type", "application/json")], timeout: timeout, maximumBody: 0)
    guard let response = try? await client.send(request) else { return .failed(retryAfter: nil) }
    return Self.response(response.status, retryAfter: response.retryAfter)
  }

  /// OTLP/HTTP, "Failures": only these four are retried. A `Retry-After` is obeyed, up to an hour.
  static func response(_ status: Int, retryAfter: Int64?) -> SpanQueue.Response {
    switch status {
    case 200..<300: .delivered
    case 429, 502, 503, 504:
      .failed(retryAfter: retryAfter.map { .seconds(min(max(0, $0), 3_600)) })
    default: .refused
    }
  }
}

extension Metrics.Page {
  mutating func add(_ spans: SpanExporter.Statistics) {
    gauge("conclave_spans_waiting", "Spans not sent to the collector yet.", spans.waiting)
    counter("conclave_spans_sent_total", "Spans that the collector took.", spans.sent)
    counter("conclave_spans_failed_total", "POSTs of spans that were not taken.", spans.failed)
    counter(
      "conclave_spans_dropped_total", "Spans given up, by reason.",
      SpanQueue.Drop.allCases.map { ("reason=\"\($0)\"", spans.drops[$0, default: 0]) })
  }
}

import Foundation
import JSON
import LinuxIO
import MediaModel
import NIOCore
import OutboundHTTP

/// Sends spans to an OpenTelemetry collector (OTLP over HTTP, as JSON), by a `SpanQueue`.
final class SpanExporter: Sendable {
  struct Statistics {
    var waiting = 0
    var sent: UInt64 = 0
    var failed: UInt64 = 0
    var drops: [SpanQueue.Drop: UInt64] = [:]
  }

  private static let timeout = Duration.seconds(10)
  /// The longest time for which the end of the server waits for the collector.
  private static let farewell = Duration.seconds(2)

  private let client: HTTPClient
  private let url: String
  private let sender: RetrySender<SpanQueue>

  /// - Throws: `ConfigurationError` if there is no thread.
  init(_ configuration: Configuration.Telemetry, group: any EventLoopGroup) throws(ConfigurationError) {
    do throws(SystemError) { client = try HTTPClient() } catch { throw ConfigurationError("telemetry: \(error)") }
    let url = configuration.traces
    self.url = url
    sender = RetrySender(SpanQueue(), clock: MonotonicClock.now, on: group.next()) { [client] spans in
      await Self.post(spans, to: url, by: client, timeout: Self.timeout)
    }
  }

  var statistics: Statistics {
    let queue = sender.queue
    return Statistics(waiting: queue.count, sent: queue.sent, failed: queue.failed, drops: queue.drops)
  }

  /// Returns immediately.
  func add(_ spans: [Span]) {
    guard !spans.isEmpty else { return }
    sender.update { $0.add(spans, now: $1) }
  }

  /// Sends the rest, for at most a moment.
  func stop() async {
    let end = MonotonicClock.now().advanced(by: Self.farewell)
    let batches = sender.stop { $0.drain() }
    for batch in batches {
      let left = MonotonicClock.now().duration(to: end)
      guard left > .zero, case .delivered = await Self.post(batch, to: url, by: client, timeout: left) else { break }
    }
    client.stop()
  }

  private static func post(
    _ spans: [Span], to url: String, by client: HTTPClient, timeout: Duration
  ) async -> SpanQueue.Response {
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

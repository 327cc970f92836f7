import Contract
import MediaModel

/// The spans of calls on their way to the collector.
struct Telemetry {
  private var spans = CallSpans()
  private let exporter: SpanExporter

  init(_ exporter: SpanExporter) { self.exporter = exporter }

  private static func random() -> UInt64 { .random(in: .min ... .max) }

  /// - Returns: the `traceparent` of a webhook with this event; nil for an event without a trace.
  mutating func take(_ event: EventMessage) -> String? {
    // The end of a call is the end of its trace.
    let before = event.call.flatMap { spans.context(of: $0) }
    exporter.add(spans.take(event, random: Self.random))
    return (before ?? event.call.flatMap { spans.context(of: $0) })?.traceparent
  }

  mutating func ask(about call: CallID) -> TraceContext { spans.ask(about: call, random: Self.random) }

  mutating func take(
    _ answer: Authorizer.Answer, to question: TraceContext, about call: CallID, asked: Int, from: Timestamp,
    now: Timestamp
  ) {
    exporter.add(
      spans.answered(
        question, about: call, asked: asked, allowed: answer.allowed.count, outcome: answer.source.rawValue,
        hasFailed: answer.source != .backEnd, from: from, to: now))
  }

  mutating func stop(now: Timestamp) { exporter.add(spans.stop(now: now)) }
}

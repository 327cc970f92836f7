import MediaModel

/// A place in a trace (W3C Trace Context): the trace, and a span in it.
struct TraceContext: Hashable, Sendable {
  var trace: UInt128
  var span: UInt64

  /// A new trace, and its first span. An id is never 0.
  init(random: () -> UInt64) {
    trace = max(1, UInt128(random()) << 64 | UInt128(random()))
    span = max(1, random())
  }

  /// Another span of the same trace.
  func child(random: () -> UInt64) -> TraceContext {
    var child = self
    child.span = max(1, random())
    return child
  }

  var traceID: String { Self.digits(trace, 32) }
  var spanID: String { Self.digits(span, 16) }

  /// The header of this name: version 00, sampled.
  var traceparent: String { "00-\(traceID)-\(spanID)-01" }

  private static func digits(_ number: some FixedWidthInteger, _ count: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: count - digits.utf8.count) + digits
  }
}

/// A finished span. Nothing in it names a person.
struct Span: Hashable, Sendable {
  /// OpenTelemetry's SpanKind.
  enum Kind: Int, Sendable { case inside = 1, client = 3 }

  enum Value: Hashable, Sendable {
    case text(String)
    case number(Int)
  }

  var name: String
  var context: TraceContext
  /// nil for the first span of a trace.
  var parent: UInt64?
  var kind = Kind.inside
  var from: Timestamp
  var to: Timestamp
  var attributes: [String: Value]
  var hasFailed = false
}

import MediaModel

/// The body of a POST to `/v1/traces`: OTLP 1 as JSON. Ids are hexadecimal, and numbers of 64 bits are strings (opentelemetry-proto, "JSON Protobuf Encoding").
struct SpanBatch: Encodable {
  var resourceSpans: [ResourceSpans]

  init(_ spans: [Span]) {
    let resource = Resource(attributes: [
      Attribute(key: "service.name", value: .text("conclave")),
      Attribute(key: "service.version", value: .text(Server.version)),
    ])
    let scope = Scope(name: "conclave", version: Server.version)
    resourceSpans = [
      ResourceSpans(resource: resource, scopeSpans: [ScopeSpans(scope: scope, spans: spans.map(OneSpan.init))])
    ]
  }

  struct ResourceSpans: Encodable {
    var resource: Resource
    var scopeSpans: [ScopeSpans]
  }

  struct Resource: Encodable { var attributes: [Attribute] }

  struct ScopeSpans: Encodable {
    var scope: Scope
    var spans: [OneSpan]
  }

  struct Scope: Encodable {
    var name: String
    var version: String
  }

  struct OneSpan: Encodable {
    var traceId: String
    var spanId: String
    var parentSpanId: String?
    var name: String
    var kind: Int
    var startTimeUnixNano: String
    var endTimeUnixNano: String
    var attributes: [Attribute]
    var status: Status

    init(_ span: Span) {
      traceId = span.context.traceID
      spanId = span.context.spanID
      var parent = span.context
      parent.span = span.parent ?? 0
      parentSpanId = span.parent == nil ? nil : parent.spanID
      name = span.name
      kind = span.kind.rawValue
      startTimeUnixNano = Self.nanoseconds(span.from)
      endTimeUnixNano = Self.nanoseconds(span.to)
      attributes = span.attributes.sorted { $0.key < $1.key }.map { Attribute(key: $0.key, value: $0.value) }
      status = Status(code: span.hasFailed ? 2 : nil)
    }

    /// Since 1970.
    private static func nanoseconds(_ time: Timestamp) -> String { "\(max(0, time.milliseconds))000000" }
  }

  /// Without a code it is unset; 2 is an error.
  struct Status: Encodable { var code: Int? }

  struct Attribute: Encodable {
    var key: String
    var value: Span.Value
  }
}

extension Span.Value: Encodable {
  private enum CodingKeys: String, CodingKey { case stringValue, intValue }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .text(let text): try container.encode(text, forKey: .stringValue)
    case .number(let number): try container.encode("\(number)", forKey: .intValue)
    }
  }
}

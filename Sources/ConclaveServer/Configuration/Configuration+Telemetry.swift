extension Configuration {
  /// Spans of calls for an OpenTelemetry collector. Without it no spans are made or sent.
  package struct Telemetry: Sendable {
    /// The collector's address for OTLP over HTTP, as `http://127.0.0.1:4318`.
    package var otlp = ""

    /// The path that OTLP appends to it for traces.
    var traces: String { (otlp.hasSuffix("/") ? String(otlp.dropLast()) : otlp) + "/v1/traces" }
  }

  func validateTelemetry() throws(ConfigurationError) {
    guard let telemetry else { return }
    try Self.check(url: telemetry.otlp, "telemetry.otlp")
    guard !telemetry.otlp.contains("?"), !telemetry.otlp.contains("#"), !telemetry.otlp.contains("/v1/traces") else {
      throw ConfigurationError("telemetry.otlp: take the collector's address alone; /v1/traces is appended")
    }
  }
}

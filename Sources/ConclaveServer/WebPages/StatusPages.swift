import NIOCore
package import Listening

/// Health and metrics, on the HTTP port or on a separate port (`listen.metrics`).
package struct StatusPages: Sendable {
  let unready: @Sendable () -> String?
  private let metrics: SharedText

  /// - Parameters:
  ///   - unready: why the server should get no new clients; nil if it should.
  ///   - metrics: the text of `/metrics`.
  package init(unready: @escaping @Sendable () -> String?, metrics: @escaping @Sendable () async -> String) {
    self.unready = unready
    self.metrics = SharedText(make: metrics)
  }

  /// nil for any other path.
  package func response(to path: String) async -> HTTPResponse? {
    switch path {
    case "/healthz": HTTPResponse(text: "ok\n")
    case "/readyz": unready().map { HTTPResponse(status: 503, text: $0 + "\n") } ?? HTTPResponse(text: "ready\n")
    case "/metrics": HTTPResponse(text: await metrics.text())
    default: nil
    }
  }
}

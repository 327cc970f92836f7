import Foundation
import JSON
import MediaModel
import NIOCore
package import Signaling

/// What the HTTP port answers: the web client, health, metrics, and in demo mode a token for just a name.
package struct Pages: Sendable {
  private let files: [String: HTTPResponse]
  /// nil without demo mode.
  private let demo: TokenAuthority?
  private let clock: WallClock
  private let unready: @Sendable () -> String?
  private let metrics: @Sendable () async -> String

  /// How long a demo token is good; the page asks for a fresh one by itself.
  private static let demoTokenLifetime = Duration.seconds(3600)

  /// - Parameters:
  ///   - demo: mints tokens for just a name; nil without demo mode.
  ///   - unready: why the server should get no new clients; nil when it should.
  package init(
    demo: TokenAuthority?, clock: WallClock, unready: @escaping @Sendable () -> String?,
    metrics: @escaping @Sendable () async -> String
  ) throws(ConfigurationError) {
    files = try Self.webClient()
    self.demo = demo
    self.clock = clock
    self.unready = unready
    self.metrics = metrics
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let demo, request.isForThisMachine {
      switch (request.method, request.path) {
      case ("GET", "/demo"): return HTTPResponse(text: "demo\n")
      case ("POST", "/demo/token"): return demoToken(request, mintedBy: demo)
      default: break
      }
    }
    return switch (request.method, request.path) {
    case ("GET", "/healthz"): HTTPResponse(text: "ok\n")
    case ("GET", "/readyz"):
      if let reason = unready() {
        HTTPResponse(status: 503, text: reason + "\n")
      } else {
        HTTPResponse(text: "ready\n")
      }
    case ("GET", "/metrics"): HTTPResponse(text: await metrics())
    case ("GET", let path):
      files[path == "/" ? "/index.html" : path] ?? HTTPResponse(status: 404, text: "There is no such page.\n")
    default: HTTPResponse(status: 405, text: "This page takes GET only.\n")
    }
  }

  private struct DemoSignIn: Decodable {
    var user: UserID
    var device: DeviceID?
    var name: String?
  }

  private struct DemoToken: Encodable { var token: String }

  private func demoToken(_ request: HTTPRequest, mintedBy tokens: TokenAuthority) -> HTTPResponse {
    // Another site's page can't read our answer, but must not make us act either.
    guard request[header: "content-type"]?.hasPrefix("application/json") == true else {
      return HTTPResponse(status: 415, text: "Send application/json.\n")
    }
    do {
      let signIn = try JSON.decode(DemoSignIn.self, from: Array(request.body.readableBytesView))
      let token = try tokens.mint(
        user: signIn.user, device: signIn.device, name: signIn.name,
        expiresAt: clock.now() + Self.demoTokenLifetime)
      return HTTPResponse(
        headers: [("content-type", "application/json"), ("cache-control", "no-store")],
        body: ByteBuffer(bytes: try JSON.encode(DemoToken(token: token))))
    } catch let error as JSONError {
      return HTTPResponse(status: 400, text: "\(error.field ?? "body"): \(error.reason)\n")
    } catch {
      return HTTPResponse(status: 500, text: "The token could not be made.\n")
    }
  }

  /// The web client's files, read once at the start.
  private static func webClient() throws(ConfigurationError) -> [String: HTTPResponse] {
    guard let folder = Bundle.module.resourceURL?.appendingPathComponent("Web").path,
      let names = try? FileManager.default.subpathsOfDirectory(atPath: folder)
    else { throw ConfigurationError("the web client's files are missing beside the program; install both together") }
    var files: [String: HTTPResponse] = [:]
    for name in names {
      guard let type = contentTypes[(name as NSString).pathExtension],
        let data = FileManager.default.contents(atPath: folder + "/" + name)
      else { continue }
      files["/" + name] = HTTPResponse(
        headers: securityHeaders + [("content-type", type), ("cache-control", "no-cache")],
        body: ByteBuffer(bytes: data))
    }
    return files
  }

  private static let contentTypes = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "webmanifest": "application/manifest+json",
  ]

  private static let securityHeaders = [
    (
      "content-security-policy",
      "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "media-src 'self' blob: mediastream:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        + "require-trusted-types-for 'script'; trusted-types conclave"
    ),
    ("permissions-policy", "camera=(self), microphone=(self), display-capture=(self)"),
    ("cross-origin-opener-policy", "same-origin"),
  ]
}

extension HTTPRequest {
  /// Whether a person at this very machine asks, by a name of this machine: a foreign name that points here (DNS rebinding) is another site's page.
  fileprivate var isForThisMachine: Bool {
    guard isFromLoopback, let host = self[header: "host"] else { return false }
    return ["localhost", "127.0.0.1", "[::1]"].contains { name in
      guard host.lowercased().hasPrefix(name) else { return false }
      let rest = host.dropFirst(name.count)
      return rest.isEmpty || rest.hasPrefix(":") && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
    }
  }
}

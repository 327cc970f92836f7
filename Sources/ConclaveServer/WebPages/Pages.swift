import Contract
import Foundation
import JSON
import MediaModel
import NIOCore
package import Listening

/// The pages of the HTTP port: the web client, health, metrics, the guests' entry, and in demo mode tokens for only a name.
package struct Pages: Sendable {
  private let webClient: WebClient
  /// nil without demo mode.
  private let demo: TokenAuthority?
  /// nil if guests are not admitted.
  private let guests: GuestEntry?
  private let clock: WallClock
  /// nil if health and metrics have a separate port.
  private let status: StatusPages?

  /// How long a demo token is valid; the page requests a fresh one automatically.
  private static let demoTokenLifetime = Duration.seconds(3600)

  /// - Parameters:
  ///   - demo: mints tokens for only a name; nil without demo mode.
  ///   - guests: nil if guests are not admitted.
  ///   - status: nil if health and metrics have a separate port.
  ///   - page: the defaults of the web client's settings.
  package init(
    demo: TokenAuthority?, guests: GuestEntry?, clock: WallClock, status: StatusPages?,
    page: Configuration.Page = .init()
  ) throws(ConfigurationError) {
    webClient = try WebClient(page: page)
    self.guests = guests
    self.demo = demo
    self.clock = clock
    self.status = status
  }

  /// Any path.
  var route: Route { Route(.all) { await respond(to: $0) } }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let demo, request.isForThisMachine {
      switch (request.method, request.path) {
      case ("GET", "/demo"): return HTTPResponse(text: "demo\n")
      case ("POST", "/demo/token"): return demoToken(request, mintedBy: demo)
      default: break
      }
    }
    if let answer = await guests?.respond(to: request) { return answer }
    if request.method == "GET", let page = await status?.response(to: request.path) { return page }
    return switch (request.method, request.path) {
    case ("OPTIONS", _): HTTPResponse(headers: [("allow", HTTPRequest.methods.joined(separator: ", "))])
    case ("GET", _): webClient.response(to: request) ?? HTTPResponse(status: 404, text: "There is no such page.\n")
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
    // Another site's page cannot read our answer, but must not make us act either.
    guard request[header: "content-type"]?.hasPrefix("application/json") == true else {
      return HTTPResponse(status: 415, text: "Send application/json.\n")
    }
    do {
      let signIn = try JSONCoding.decode(DemoSignIn.self, from: Array(request.body.readableBytesView))
      guard !signIn.user.isGuest else {
        return HTTPResponse(status: 400, text: "user: ids that begin with \(UserID.guestPrefix) are of guests\n")
      }
      guard signIn.name?.isDisplayName ?? true else {
        return HTTPResponse(status: 400, text: "name: it has no visible character, or a control character\n")
      }
      let token = try tokens.mint(
        user: signIn.user, device: signIn.device, name: signIn.name,
        expiresAt: clock.machineTime() + Self.demoTokenLifetime)
      return HTTPResponse(
        headers: [("content-type", "application/json"), ("cache-control", "no-store")],
        body: ByteBuffer(bytes: try JSONCoding.encode(DemoToken(token: token))))
    } catch let error as JSONError {
      return HTTPResponse(status: 400, text: "\(error.field ?? "body"): \(error.reason)\n")
    } catch {
      return HTTPResponse(status: 500, text: "The token could not be made.\n")
    }
  }
}

extension HTTPRequest {
  /// Whether a person on this machine asks, by a name of this machine: a foreign name that points here (DNS rebinding) is another site's page.
  fileprivate var isForThisMachine: Bool {
    guard isFromLoopback, let host = self[header: "host"] else { return false }
    return ["localhost", "127.0.0.1", "[::1]"].contains { name in
      guard host.lowercased().hasPrefix(name) else { return false }
      let rest = host.dropFirst(name.count)
      return rest.isEmpty || rest.hasPrefix(":") && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
    }
  }
}

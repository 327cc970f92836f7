import Connections
package import Contract
import Foundation
import JSON
import LinuxIO
package import MediaModel
import NIOCore
package import Listening
import Synchronization

/// `/guest`: admits people without an account by a link. The holder of a link gets a token that is valid only for its call (protocol section 4,
/// "Guests").
package final class GuestEntry: Sendable {
  /// Requests for tokens, by their result.
  package struct Counts: Hashable, Sendable {
    package var letIn: UInt64 = 0
    package var renewed: UInt64 = 0
    package var refused: UInt64 = 0
    package var limited: UInt64 = 0
    /// The lasting link has no call.
    package var waiting: UInt64 = 0
  }

  /// The calls, as far as guests need them.
  package struct CallLookup: Sendable {
    var admits: @Sendable (_ link: String, CallID) async -> Bool
    var runs: @Sendable (CallID) async -> Bool
    /// The lasting link as its holder sees it; nil if there is none.
    var opened: @Sendable (LinkID) async -> OpenedLink?
    /// Somebody waits at it.
    var waits: @Sendable (LinkID) -> Void

    package init(
      admits: @escaping @Sendable (_ link: String, CallID) async -> Bool,
      runs: @escaping @Sendable (CallID) async -> Bool, opened: @escaping @Sendable (LinkID) async -> OpenedLink?,
      waits: @escaping @Sendable (LinkID) -> Void
    ) {
      self.admits = admits
      self.runs = runs
      self.opened = opened
      self.waits = waits
    }
  }

  private let tokens: TokenAuthority
  private let clock: WallClock
  /// Addresses that many share.
  private let proxies: AddressList
  private let calls: CallLookup
  /// Pages of other origins that may let guests in.
  private let origins: LiveValue<OriginPolicy>
  private let state = Mutex((counts: Counts(), rates: GuestRates()))

  /// The page requests a fresh token automatically.
  static let lifetime = Duration.seconds(3600)
  static let nameBytes = 1...128
  static let device = DeviceID(unchecked: "guest")

  package init(
    tokens: TokenAuthority, clock: WallClock, proxies: AddressList, calls: CallLookup,
    origins: OriginPolicy = .sameHost(also: [])
  ) {
    self.origins = LiveValue(origins)
    self.tokens = tokens
    self.clock = clock
    self.proxies = proxies
    self.calls = calls
  }

  package func setOrigins(_ origins: OriginPolicy) { self.origins.set(origins) }

  package var counts: Counts { state.withLock { $0.counts } }

  private struct Asked: Decodable {
    var call: CallID?
    var link: String?
    /// A lasting link, in place of the call and its link.
    var lasting: LinkID?
    var name: String?
    /// A previous token, in exchange for a fresh one.
    var token: String?
  }

  private struct Granted: Encodable {
    var token: String
    var user: UserID
    /// The call that a lasting link opens, and the token of its link.
    var call: CallID?
    var link: String?
  }

  /// nil for any other path.
  package func respond(to request: HTTPRequest) async -> HTTPResponse? {
    let response: HTTPResponse? =
      switch (request.method, request.path) {
      case ("OPTIONS", "/guest"), ("OPTIONS", "/guest/token"):
        HTTPResponse(headers: [("allow", HTTPRequest.methods.joined(separator: ", "))])
      case ("GET", "/guest"): HTTPResponse(text: "A link lets guests in.\n")
      case ("POST", "/guest/token"): await token(for: request)
      default: nil
      }
    return response.map { shared($0, with: request) }
  }

  /// Pages of the operator's other origins may read the answer (Fetch standard, CORS protocol). Cookies are of no use here, so none are requested.
  private func shared(_ response: HTTPResponse, with request: HTTPRequest) -> HTTPResponse {
    var response = response
    response.headers.append(("vary", "origin"))
    guard let origin = request[header: "origin"], origins.value.names(origin) else { return response }
    response.headers.append(("access-control-allow-origin", origin))
    guard request.method == "OPTIONS" else { return response }
    response.headers += [
      ("access-control-allow-methods", "GET, POST"), ("access-control-allow-headers", "content-type"),
      ("access-control-max-age", "600"),
    ]
    return response
  }

  private func token(for request: HTTPRequest) async -> HTTPResponse {
    // Another site's page cannot read the answer, but must not make the server act either.
    guard request[header: "content-type"]?.hasPrefix("application/json") == true else {
      return HTTPResponse(status: 415, text: "Send application/json.\n")
    }
    let address = proxies.contains(request.remoteAddress) ? nil : AddressBlock(request.remoteAddress)
    if let wait = state.withLock({ $0.rates.look(from: address, now: Self.now) }) { return limited(wait) }
    do {
      let asked = try JSONCoding.decode(Asked.self, from: Array(request.body.readableBytesView))
      return try await asked.token == nil ? letIn(asked, from: address) : renew(asked, from: address)
    } catch let error as JSONError {
      return HTTPResponse(status: 400, text: "\(error.field ?? "body"): \(error.reason)\n")
    } catch {
      return HTTPResponse(status: 500, text: "The token could not be made.\n")
    }
  }

  private func letIn(_ asked: Asked, from address: AddressBlock?) async throws -> HTTPResponse {
    let name = (asked.name ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
    guard Self.nameBytes.contains(name.utf8.count), name.isDisplayName else {
      return HTTPResponse(
        status: 400, text: "name: 1 to 128 bytes with a visible character, and without control characters\n")
    }
    if let lasting = asked.lasting { return try await letIn(by: lasting, name: name, from: address) }
    guard let call = asked.call, let link = asked.link, await calls.admits(link, call) else {
      return refused(from: address)
    }
    return try letIn(to: call, name: name, from: address)
  }

  /// A lasting link lets in once it has a call. Until then its holder asks again: that keeps nothing on the server, however many wait.
  private func letIn(by lasting: LinkID, name: String, from address: AddressBlock?) async throws -> HTTPResponse {
    guard let opened = await calls.opened(lasting) else { return refused(from: address) }
    guard let call = opened.call, let link = opened.token else {
      if let wait = state.withLock({ $0.rates.takeWait(at: lasting, from: address, now: Self.now) }) {
        return limited(wait)
      }
      state.withLock { $0.counts.waiting += 1 }
      calls.waits(lasting)
      return try answer(opened, status: 202)
    }
    return try letIn(to: call, by: link, name: name, from: address)
  }

  /// - Parameter link: the token of the call's link, if the guest does not know it.
  private func letIn(
    to call: CallID, by link: String? = nil, name: String, from address: AddressBlock?
  ) throws -> HTTPResponse {
    if let wait = state.withLock({ $0.rates.take(for: call, from: address, now: Self.now) }) { return limited(wait) }
    let digits = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
    let user = UserID(unchecked: UserID.guestPrefix + digits)
    state.withLock { $0.counts.letIn += 1 }
    return try grant(user, name: name, call, by: link)
  }

  /// A fresh token for the same guest, even if the link is over: the call decides whether the guest may still join.
  private func renew(_ asked: Asked, from address: AddressBlock?) async throws -> HTTPResponse {
    guard let text = asked.token, text.hasPrefix(UserID.guestPrefix),
      let claims = try? await tokens.verify(String(text.dropFirst(UserID.guestPrefix.count)), now: clock.machineTime()),
      let call = claims.guestOf, await calls.runs(call)
    else { return refused(from: address) }
    if let wait = state.withLock({ $0.rates.takeRenewal(of: claims.user, now: Self.now) }) { return limited(wait) }
    state.withLock { $0.counts.renewed += 1 }
    return try grant(claims.user, name: claims.name, call)
  }

  private func grant(_ user: UserID, name: String?, _ call: CallID, by link: String? = nil) throws -> HTTPResponse {
    let token = try tokens.mint(
      user: user, device: Self.device, name: name, guestOf: call, expiresAt: clock.machineTime() + Self.lifetime)
    return try answer(
      Granted(token: UserID.guestPrefix + token, user: user, call: link == nil ? nil : call, link: link), status: 200)
  }

  private func answer(_ body: some Encodable, status: Int) throws -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [("content-type", "application/json"), ("cache-control", "no-store")],
      body: ByteBuffer(bytes: try JSONCoding.encode(body)))
  }

  /// The same answer whatever is wrong: a stranger does not learn whether a call exists.
  private func refused(from address: AddressBlock?) -> HTTPResponse {
    if let wait = state.withLock({ $0.rates.takeWrong(from: address, now: Self.now) }) { return limited(wait) }
    state.withLock { $0.counts.refused += 1 }
    return HTTPResponse(status: 403, text: "The link is over, was revoked, or is for another call.\n")
  }

  private func limited(_ wait: UInt64) -> HTTPResponse {
    state.withLock { $0.counts.limited += 1 }
    return .tooMany("Too many guests at once: try again in a moment.\n", wait: wait)
  }

  private static var now: UInt64 { MonotonicClock.now().nanoseconds }
}

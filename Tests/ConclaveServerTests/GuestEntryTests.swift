import JSON
import MediaModel
import NIOCore
import Signaling
import Testing

@testable import ConclaveServer

/// `/guest`: a token for the holder of a link.
@Suite struct GuestEntryTests {
  private static let secret = String(repeating: "g", count: 64)
  private let tokens = TokenAuthority(guestSecret: secret)
  private let clock = WallClock()

  private func entry(runs: Bool = true) -> GuestEntry {
    GuestEntry(
      tokens: tokens, clock: clock, proxies: .loopback,
      calls: GuestEntry.CallLookup(admits: { link, call in link == "good" && call.text == "c1" }, runs: { _ in runs }))
  }

  private func post(
    _ body: String, to entry: GuestEntry, from address: String = "127.0.0.1", type: String = "application/json"
  ) async throws -> HTTPResponse {
    let request = HTTPRequest(
      method: "POST", path: "/guest/token", query: nil, headers: [("content-type", type)],
      body: ByteBuffer(string: body), remoteAddress: try SocketAddress(ipAddress: address, port: 5))
    return try #require(await entry.respond(to: request))
  }

  private func token(in response: HTTPResponse) throws -> String {
    struct Body: Decodable { var token: String }
    return try JSONCoding.decode(Body.self, from: Array(response.body.readableBytesView)).token
  }

  private func claims(_ token: String) async throws -> Claims {
    try await tokens.verify(String(token.dropFirst(UserID.guestPrefix.count)), now: clock.now())
  }

  private let ana = #"{"call":"c1","link":"good","name":" Ana "}"#

  @Test func aNameAndALinkAreEnough() async throws {
    let entry = entry()
    let response = try await post(ana, to: entry)
    #expect(response.status == 200)
    let claims = try await claims(token(in: response))
    #expect(claims.user.isGuest && claims.name == "Ana" && claims.guestOf?.text == "c1")
    #expect(claims.device == GuestEntry.device && claims.roles.isEmpty && !claims.isService)
    let other = try await self.claims(token(in: post(ana, to: entry)))
    #expect(other.user != claims.user)
    #expect(entry.counts == GuestEntry.Counts(letIn: 2))
  }

  @Test(arguments: [
    #"{"call":"c1","link":"bad","name":"Ana"}"#, #"{"call":"c2","link":"good","name":"Ana"}"#,
    #"{"link":"good","name":"Ana"}"#, #"{"call":"c1","name":"Ana"}"#, #"{"token":""}"#, #"{"token":"guest~a.b.c"}"#,
  ])
  func otherGuestsAreRefused(body: String) async throws {
    let entry = entry()
    #expect(try await post(body, to: entry).status == 403)
    #expect(entry.counts == GuestEntry.Counts(refused: 1))
  }

  @Test(arguments: [
    "", "{", "[]", #"{"call":"c1","link":"good","name":7}"#, #"{"call":"c1","link":"good"}"#,
    #"{"call":"c1","link":"good","name":"  "}"#, #"{"call":"c1","link":"good","name":"a\u0007"}"#,
    #"{"call":"c1","link":"good","name":"\#(String(repeating: "é", count: 65))"}"#,
  ])
  func unreadableBodiesAreRefused(body: String) async throws {
    #expect(try await post(body, to: entry()).status == 400)
  }

  @Test func aFormOfAnotherSiteGetsNothing() async throws {
    #expect(try await post(ana, to: entry(), type: "text/plain").status == 415)
  }

  @Test func aTokenIsRenewedWhileTheCallRuns() async throws {
    let first = try token(in: await post(ana, to: entry()))
    let again = try await post(#"{"token":"\#(first)"}"#, to: entry())
    let fresh = try await claims(token(in: again))
    #expect(try await fresh.user == claims(first).user && fresh.name == "Ana" && fresh.guestOf?.text == "c1")
    #expect(try await post(#"{"token":"\#(first)"}"#, to: entry(runs: false)).status == 403)
    let own = try TokenAuthority(secret: Self.secret).mint(
      user: #require(UserID("alice")), device: nil, name: nil, expiresAt: clock.now() + .seconds(60))
    #expect(try await post(#"{"token":"guest~\#(own)"}"#, to: entry()).status == 403)
  }

  @Test func anAddressAsksOnlySoOften() async throws {
    let entry = entry()
    for _ in 0..<GuestRates.perAddress.burst {
      #expect(try await post(#"{"call":"c1","link":"bad","name":"A"}"#, to: entry, from: "192.0.2.1").status == 403)
    }
    let limited = try await post(ana, to: entry, from: "192.0.2.1")
    #expect(limited.status == 429 && limited.headers.contains { $0.name == "retry-after" })
    #expect(try await post(ana, to: entry, from: "192.0.2.2").status == 200)
    #expect(entry.counts.limited == 1)
  }

  @Test func aCallHasSoManyNewGuestsAtOnce() async throws {
    let entry = entry()
    for _ in 0..<GuestRates.perCall.burst { #expect(try await post(ana, to: entry).status == 200) }
    #expect(try await post(ana, to: entry).status == 429)
  }

  /// Ten thousand addresses with buckets that are not full: more are made to wait, and nothing grows.
  @Test func addressesAreRememberedWithinBounds() throws {
    var rates = GuestRates()
    var waits = 0
    for number in 0..<12_000 {
      let text = "10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"
      let address = AddressBlock(try SocketAddress(ipAddress: text, port: 1))
      // The bound of all is not what is tested: it gets its tokens back in 10 ms each.
      if rates.take(from: address, now: UInt64(number) * 10_000) != nil { waits += 1 }
    }
    #expect(waits >= 2_000)
    let late = AddressBlock(try SocketAddress(ipAddress: "192.0.2.1", port: 1))
    #expect(rates.take(from: late, now: 60_000_000_000) == nil, "those that are full again make room")
  }

  @Test func otherPathsAreNotIts() async throws {
    for (method, path) in [("GET", "/guest/token"), ("POST", "/guest"), ("GET", "/"), ("POST", "/guests")] {
      let request = HTTPRequest(
        method: method, path: path, query: nil, headers: [], body: ByteBuffer(), remoteAddress: nil)
      #expect(await entry().respond(to: request) == nil)
    }
  }
}

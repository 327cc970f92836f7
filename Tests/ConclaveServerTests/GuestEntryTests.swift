import Contract
import JSON
import MediaModel
import NIOCore
import Connections
import Listening
import Synchronization
import Testing

@testable import ConclaveServer

/// `/guest`: a token for the holder of a link.
@Suite struct GuestEntryTests {
  private static let secret = String(repeating: "g", count: 64)
  private let tokens = TokenAuthority(guestSecret: secret)
  private let clock = WallClock()

  private let lasting = LinkID(unchecked: "YWxpY2UncyBsaW5rICMxIQ")
  private let expiry = Timestamp(milliseconds: 1_790_000_000_000)

  /// - Parameters:
  ///   - call: that of the lasting link.
  ///   - waits: called when somebody waits at it.
  private func entry(
    runs: Bool = true, call: CallID? = nil, proxies: AddressList = .loopback,
    waits: @escaping @Sendable (LinkID) -> Void = { _ in }
  ) -> GuestEntry {
    let opened = OpenedLink(name: "Alice", expiresAt: expiry, call: call, token: call == nil ? nil : "good")
    return GuestEntry(
      tokens: tokens, clock: clock, proxies: proxies,
      calls: GuestEntry.CallLookup(
        admits: { link, call in link == "good" && call.text == "c1" }, runs: { _ in runs },
        opened: { [lasting] in $0 == lasting ? opened : nil }, waits: waits))
  }

  private func post(
    _ body: String, to entry: GuestEntry, from address: String = "127.0.0.1", type: String = "application/json"
  ) async throws -> HTTPResponse {
    let request = HTTPRequest(
      method: "POST", path: "/guest/token", query: nil, headers: [("content-type", type)],
      body: ByteBuffer(string: body), remoteAddress: try SocketAddress(ipAddress: address, port: 5))
    return try #require(await entry.respond(to: request))
  }

  /// An app's own page has another origin, and `application/json` makes browsers send a preflight request (Fetch
  /// standard, CORS-preflight fetch).
  @Test(arguments: [("https://app.example", true), ("https://APP.example:443", true), ("https://evil.example", false)])
  func pagesOfTheOperatorsOriginsLetGuestsIn(origin: String, isNamed: Bool) async throws {
    let entry = GuestEntry(
      tokens: tokens, clock: clock, proxies: .loopback,
      calls: GuestEntry.CallLookup(
        admits: { _, _ in true }, runs: { _ in true }, opened: { _ in nil }, waits: { _ in }),
      origins: .sameHost(also: ["https://app.example"]))
    func allowed(_ method: String, _ path: String) async throws -> (origin: String?, methods: String?) {
      let request = HTTPRequest(
        method: method, path: path, query: nil, headers: [("origin", origin), ("content-type", "application/json")],
        body: ByteBuffer(string: #"{"call":"c1","link":"good","name":"Ana"}"#),
        remoteAddress: try SocketAddress(ipAddress: "127.0.0.1", port: 5))
      let response = try #require(await entry.respond(to: request))
      #expect(response.status == 200)
      func header(_ name: String) -> String? { response.headers.first { $0.name == name }?.value }
      #expect(header("vary") == "origin")
      return (header("access-control-allow-origin"), header("access-control-allow-methods"))
    }
    let asked = try await allowed("OPTIONS", "/guest/token")
    #expect(asked.origin == (isNamed ? origin : nil) && asked.methods == (isNamed ? "GET, POST" : nil))
    for (method, path) in [("GET", "/guest"), ("POST", "/guest/token")] {
      #expect(try await allowed(method, path).origin == (isNamed ? origin : nil))
    }
  }

  private func token(in response: HTTPResponse) throws -> String {
    struct Body: Decodable { var token: String }
    return try JSONCoding.decode(Body.self, from: Array(response.body.bytes.readableBytesView)).token
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
    #"{"call":"c1","link":"good","name":"\u2060"}"#, #"{"call":"c1","link":"good","name":"Ana\u2028Bob"}"#,
    #"{"call":"c1","link":"good","name":"\#(String(repeating: "é", count: 65))"}"#,
  ])
  func unreadableBodiesAreRefused(body: String) async throws {
    #expect(try await post(body, to: entry()).status == 400)
  }

  // MARK: lasting links

  private func body(_ response: HTTPResponse) throws -> OpenedLink {
    try JSONCoding.decode(OpenedLink.self, from: Array(response.body.bytes.readableBytesView))
  }

  private var waiting: String { #"{"lasting":"\#(lasting.text)","name":"Ana"}"# }

  @Test func aLastingLinkWithoutACallMakesItsHolderWait() async throws {
    let announced = Mutex<[LinkID]>([])
    let entry = entry { link in announced.withLock { $0.append(link) } }
    for _ in 0..<2 {
      let response = try await post(waiting, to: entry)
      #expect(response.status == 202)
      #expect(try body(response) == OpenedLink(name: "Alice", expiresAt: expiry), "no token, and no call")
    }
    #expect(announced.withLock { $0 } == [lasting, lasting])
    #expect(entry.counts == GuestEntry.Counts(waiting: 2))
  }

  @Test func aLastingLinkLetsIntoItsCall() async throws {
    struct Granted: Decodable {
      var token: String
      var call: String
      var link: String
    }
    let entry = entry(call: CallID(unchecked: "c7")) { _ in Issue.record("nobody waits") }
    let response = try await post(waiting, to: entry)
    #expect(response.status == 200)
    let granted = try JSONCoding.decode(Granted.self, from: Array(response.body.bytes.readableBytesView))
    #expect(granted.call == "c7" && granted.link == "good")
    #expect(try await claims(granted.token).guestOf?.text == "c7")
    #expect(entry.counts == GuestEntry.Counts(letIn: 1))
  }

  @Test func anotherLastingLinkIsRefusedAsAnyWrongLink() async throws {
    let entry = entry()
    let wrong = try await post(#"{"lasting":"AAAAAAAAAAAAAAAAAAAAAA","name":"Ana"}"#, to: entry)
    let other = try await post(#"{"call":"c1","link":"bad","name":"Ana"}"#, to: entry)
    #expect(wrong.status == 403 && wrong.body.bytes == other.body.bytes)
    #expect(entry.counts == GuestEntry.Counts(refused: 2))
    #expect(try await post(#"{"lasting":"short","name":"Ana"}"#, to: entry).status == 400)
    #expect(try await post(#"{"lasting":"\#(lasting.text)","name":" "}"#, to: entry).status == 400)
  }

  /// A class waits behind one address.
  @Test func manyMayWaitAtAnAddressAndNotTooMany() async throws {
    let entry = entry(proxies: AddressList([])!)
    for _ in 0..<60 { #expect(try await post(waiting, to: entry, from: "192.0.2.7").status == 202) }
    var statuses: Set<Int> = []
    for _ in 0..<20 { statuses.insert(try await post(waiting, to: entry, from: "192.0.2.7").status) }
    #expect(statuses.contains(429))
    #expect(try await post(waiting, to: entry, from: "192.0.2.8").status == 202)
    #expect(try await post(ana, to: entry, from: "192.0.2.7").status == 200, "whose call runs comes in")
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

  @Test func anAddressShowsRightLinksOnlySoOften() async throws {
    let entry = entry()
    for _ in 0..<GuestRates.perAddress.burst {
      #expect(try await post(ana, to: entry, from: "192.0.2.1").status == 200)
    }
    let limited = try await post(ana, to: entry, from: "192.0.2.1")
    #expect(limited.status == 429 && limited.headers.contains { $0.name == "retry-after" })
    #expect(try await post(ana, to: entry, from: "192.0.2.2").status == 200)
    #expect(entry.counts.limited == 1)
  }

  /// The attacker and the guest share an address, such as that of an office or a provider's NAT.
  @Test func wrongLinksAreLimitedAndTakeNothingFromRightOnes() async throws {
    let entry = entry()
    let wrong = #"{"call":"c1","link":"bad","name":"A"}"#
    for _ in 0..<GuestRates.perAddress.burst {
      #expect(try await post(wrong, to: entry, from: "192.0.2.1").status == 403)
    }
    #expect(try await post(wrong, to: entry, from: "192.0.2.1").status == 429)
    #expect(try await post(ana, to: entry, from: "192.0.2.1").status == 200)
  }

  @Test func aCallHasSoManyNewGuestsAtOnce() async throws {
    let entry = entry()
    for _ in 0..<GuestRates.perCall.burst { #expect(try await post(ana, to: entry).status == 200) }
    #expect(try await post(ana, to: entry).status == 429)
  }

  @Test func aGuestRenewsItsTokenOnlySoOftenAndInNobodysPlace() async throws {
    let entry = entry()
    let tokens = [
      try token(in: await post(ana, to: entry, from: "192.0.2.1")),
      try token(in: await post(ana, to: entry, from: "192.0.2.1")),
    ]
    func renew(_ token: String) async throws -> Int { try await post(#"{"token":"\#(token)"}"#, to: entry).status }
    for _ in 0..<GuestRates.perGuest.burst { #expect(try await renew(tokens[0]) == 200) }
    #expect(try await renew(tokens[0]) == 429)
    #expect(try await renew(tokens[1]) == 200)
  }

  /// 1,000 wrong links a second for a minute, each from a new /64 of one /56, or through a proxy.
  @Test(arguments: [false, true])
  func aFloodOfWrongLinksLocksNoGuestOut(throughProxy: Bool) throws {
    func address(_ text: String) throws -> AddressBlock {
      try #require(AddressBlock(SocketAddress(ipAddress: text, port: 1)))
    }
    var rates = GuestRates()
    var (checked, unseen) = (0, 0)
    for number in 0..<60_000 {
      let now = UInt64(number) * 1_000_000
      let attacker = throughProxy ? nil : try address("2001:db8:1:\(String(number % 256, radix: 16))::1")
      if rates.look(from: attacker, now: now) == nil {
        checked += 1
        _ = rates.takeWrong(from: attacker, now: now)
      } else {
        unseen += 1
      }
      guard number % 1_000 == 999 else { continue }
      // An honest guest every second, at home or behind the same proxy.
      let home = throughProxy ? nil : try address("2001:db8:2:\(String(number, radix: 16))::1")
      let call = CallID(unchecked: "c\(number)")
      #expect(rates.look(from: home, now: now) == nil && rates.take(for: call, from: home, now: now) == nil)
    }
    // An address that has sent only wrong links is not checked while there are too many of them.
    #expect(
      throughProxy ? unseen == 0 : checked < 60 * GuestRates.wrongOfAll.perSecond + GuestRates.wrongOfAll.burst + 1)
  }

  /// The holder of one link may come from any number of addresses.
  @Test func oneLinkDoesNotUseUpTheRateOfAll() throws {
    var rates = GuestRates()
    for number in 0..<10_000 {
      let text = "10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"
      let address = AddressBlock(try SocketAddress(ipAddress: text, port: 1))
      _ = rates.take(for: CallID(unchecked: "attacked"), from: address, now: 0)
    }
    var passed = 0
    for number in 0..<200 where rates.take(for: CallID(unchecked: "c\(number)"), from: nil, now: 0) == nil {
      passed += 1
    }
    #expect(passed == GuestRates.ofAll.burst - GuestRates.perCall.burst)
  }

  /// Ten thousand guests with buckets that are not full: further guests have to wait, and nothing grows.
  @Test func guestsAreRememberedWithinBounds() throws {
    var rates = GuestRates()
    var waits = 0
    for number in 0..<12_000 {
      let now = UInt64(number) * 10_000
      if rates.takeRenewal(of: UserID(unchecked: "guest~\(number)"), now: now) != nil { waits += 1 }
    }
    #expect(waits >= 2_000)
    #expect(
      rates.takeRenewal(of: UserID(unchecked: "guest~late"), now: 60_000_000_000) == nil,
      "those that are full again make room")
  }

  @Test func otherPathsAreNotIts() async throws {
    for (method, path) in [("GET", "/guest/token"), ("POST", "/guest"), ("GET", "/"), ("POST", "/guests")] {
      let request = HTTPRequest(
        method: method, path: path, query: nil, headers: [], body: ByteBuffer(), remoteAddress: nil)
      #expect(await entry().respond(to: request) == nil)
    }
  }
}

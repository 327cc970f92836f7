import Foundation
import MediaModel
import Connections
import Testing

@testable import ConclaveServer

private let now = Timestamp(milliseconds: 1_790_000_000_000)
private let seconds = now.milliseconds / 1000

@Suite struct TokenAuthorityTests {
  private let tokens = TokenAuthority(secret: TokenForge.secret)

  /// Claims of alice for a minute, and `more` members.
  private func claims(_ more: String = "", sub: String = #""alice""#, exp: String = "\(seconds + 60)") -> String {
    #"{"sub":\#(sub),"exp":\#(exp)\#(more.isEmpty ? "" : ",")\#(more)}"#
  }

  private func refusal(_ token: String, by tokens: TokenAuthority? = nil) async -> TokenError? {
    do {
      _ = try await (tokens ?? self.tokens).verify(token, now: now)
      return nil
    } catch {
      return error
    }
  }

  @Test func aMintedTokenNamesUserDeviceNameAndTime() async throws {
    let user = try #require(UserID("alice"))
    let token = try tokens.mint(
      user: user, device: DeviceID("laptop"), name: "Alice", roles: ["nurse", "interpreter"], scope: "read service",
      expiresAt: now + .seconds(5))
    let claims = try await tokens.verify(token, now: now)
    #expect(claims.user == user && claims.device == DeviceID("laptop") && claims.name == "Alice")
    #expect(claims.expiresAt == now + .seconds(5))
    #expect(claims.roles == ["nurse", "interpreter"] && claims.isService)
    await #expect(throws: TokenError.expired) { try await tokens.verify(token, now: now + .seconds(5)) }
    let plain = try tokens.mint(user: user, device: nil, name: nil, expiresAt: now + .seconds(5))
    let few = try await tokens.verify(plain, now: now)
    #expect(few.device == nil && few.name == nil && few.roles.isEmpty && !few.isService)
  }

  /// RFC 8693 defines a string, and IdentityServer writes a list. Other forms are ignored.
  @Test(arguments: [
    (#""read service""#, true), (#"["read","service"]"#, true), (#"["services"]"#, false), ("7", false), ("{}", false),
  ])
  func scopeIsATextOrAList(scope: String, isService: Bool) async throws {
    let claims = try await tokens.verify(TokenForge.hmac(claims(#""scope":\#(scope)"#)), now: now)
    #expect(claims.isService == isService)
  }

  /// An issuer may also accept names that people choose. Such a user is shown by id.
  @Test(arguments: ["\u{2060}", "\u{3164}\u{FE0F}", "", " ", "A\u{2028}B"])
  func aNameThatCannotBeSeenCountsAsAbsent(name: String) async throws {
    let user = try #require(UserID("alice"))
    let token = try tokens.mint(user: user, device: nil, name: name, expiresAt: now + .seconds(5))
    #expect(try await tokens.verify(token, now: now).name == nil)
  }

  /// Tokens made with one key are invalid for the other, and the app cannot make anybody a guest.
  @Test func guestsHaveTokensOfTheirOwn() async throws {
    let guests = TokenAuthority(guestSecret: TokenForge.secret)
    let guest = try #require(UserID("guest~ana"))
    let call = CallID(unchecked: "c1")
    let token = try guests.mint(user: guest, device: nil, name: nil, guestOf: call, expiresAt: now + .seconds(5))
    #expect(try await guests.verify(token, now: now).guestOf == call)
    #expect(await refusal(token) == .subject)
    #expect(await refusal(TokenForge.hmac(claims()), by: guests) == .subject)
    #expect(await refusal(TokenForge.hmac(claims(sub: #""guest~ana""#)), by: guests) == .subject, "without a call")
    #expect(await refusal(TokenForge.hmac(claims(sub: #""guest~ana""#))) == .subject)
    #expect(try await tokens.verify(TokenForge.hmac(claims(#""call":"c1""#)), now: now).guestOf == nil)
    #expect(try await tokens.verify(TokenForge.hmac(claims(#""call":7"#)), now: now).guestOf == nil)
    for (authority, user, call) in [(tokens, guest, nil), (tokens, guest, call), (guests, guest, nil)] {
      #expect(throws: ConfigurationError.self) {
        try authority.mint(user: user, device: nil, name: nil, guestOf: call, expiresAt: now + .seconds(5))
      }
    }
  }

  @Test func rolesAreNamesOrASingleOne() async throws {
    for (json, names) in [
      (#"["interpreter","caller"]"#, ["interpreter", "caller"]), (#""interpreter""#, ["interpreter"]),
      (#"{"conclave":1}"#, []), ("[7]", []), ("null", []),
    ] {
      let token = TokenForge.hmac(claims(#""roles":\#(json)"#))
      #expect(try await tokens.verify(token, now: now).roles == names)
    }
  }

  @Test(arguments: ["HS256", "HS384", "HS512"]) func aSecretSignsByAnyHMAC(algorithm: String) async throws {
    let token = TokenForge.hmac(claims(), header: #"{"alg":"\#(algorithm)"}"#)
    #expect(await refusal(token) == nil)
    #expect(await refusal(token, by: TokenAuthority(secret: TokenForge.secret + "!")) == .signature)
    // RFC 7518 section 3.2: a key is at least as long as the digest.
    let short = String(repeating: "s", count: 40)
    let weak = TokenForge.hmac(claims(), header: #"{"alg":"\#(algorithm)"}"#, secret: short)
    #expect(await refusal(weak, by: TokenAuthority(secret: short)) == (algorithm == "HS256" ? nil : .algorithm))
  }

  /// The payload is untrusted until the signature has been verified: `"aud":[]` once crashed the process here.
  @Test(arguments: [
    #"{"sub":"x","exp":9000000000,"aud":[]}"#, "", "{", "[]", #"{"sub":"x","sub":"y"}"#, "\u{0}",
    String(repeating: "[", count: 2_000),
  ])
  func claimsWithoutASignatureAreNotLookedAt(payload: String) async {
    let unsigned =
      TokenForge.base64URL(#"{"alg":"HS256","typ":"JWT"}"#.utf8) + "." + TokenForge.base64URL(payload.utf8) + ".AA"
    #expect(await refusal(unsigned) == .signature)
  }

  @Test(arguments: [
    "", "a", "a.b", "a.b.c", "..", String(repeating: ".", count: 8_000), "e30.e30.AA",
    "eyJhbGciOiJIUzI1NiJ9.e30", "eyJhbGciOiJIUzI1NiJ9.e30.AA.AA", "eyJhbGciOiJIUzI1NiJ9.e30.A",
    "eyJhbGciOiJIUzI1NiJ9=.e30.AA", "eyJhbGciOiJIUzI1NiJ9.e30.A+", " eyJhbGciOiJIUzI1NiJ9.e30.AA",
  ])
  func malformedTokensAreRefused(text: String) async { #expect(await refusal(text) == .malformed) }

  @Test func aTokenHas8KiB() async {
    let most = TokenForge.hmac(claims(#""name":"\#(String(repeating: "n", count: 6_000))""#))
    #expect(await refusal(most) == nil)
    let more = TokenForge.hmac(claims(#""name":"\#(String(repeating: "n", count: 6_200))""#))
    #expect(more.utf8.count > 8 << 10)
    #expect(await refusal(more) == .malformed)
  }

  @Test(
    arguments: [
      (#"{"alg":"none"}"#, .algorithm), (#"{"alg":"None"}"#, .algorithm), (#"{"alg":"hs256"}"#, .algorithm),
      (#"{"alg":"RS256"}"#, .algorithm), (#"{"alg":"ES256"}"#, .algorithm), (#"{"typ":"JWT"}"#, .malformed),
      (#"{"alg":["HS256"]}"#, .malformed), (#"{"alg":null}"#, .malformed),
      (#"{"alg":"HS256","alg":"none"}"#, .malformed),
      (#"{"alg":"HS256","kid":{}}"#, .malformed), (#"{"alg":"HS256","crit":["exp"]}"#, .critical),
      (#"{"alg":"HS256","crit":[]}"#, .critical), (#"{"alg":"HS256","crit":null}"#, .critical), ("[]", .malformed),
    ] as [(String, TokenError)])
  func aHeaderThatIsNotOursIsRefused(header: String, refusal expected: TokenError) async {
    #expect(await refusal(TokenForge.hmac(claims(), header: header)) == expected)
  }

  @Test(arguments: [
    #""sub":"bob""#, #""exp":1"#, #""name":7"#, #""device":[]"#, #""nbf":"0""#,
    #""x":\#(String(repeating: "[", count: 64) + String(repeating: "]", count: 64))"#, #""name":"a\u0000b""#,
  ])
  func claimsAreReadStrictly(more: String) async {
    #expect(await refusal(TokenForge.hmac(claims(more))) == .malformed)
  }

  @Test(
    arguments: [
      ("\(seconds)", .expired), ("\(seconds - 1)", .expired), ("\(seconds).5", nil), ("0", .expired),
      ("1790000000000", .malformed), ("9e9", .malformed), ("-1", .malformed), ("1e300", .malformed),
      ("1e400", .malformed), ("-1e300", .malformed), (#""\#(seconds + 60)""#, .malformed), ("null", .malformed),
      ("8999999999", nil),
    ] as [(String, TokenError?)])
  func anEndIsNeededAndIsATime(exp: String, refusal expected: TokenError?) async {
    #expect(await refusal(TokenForge.hmac(claims(exp: exp))) == expected)
  }

  @Test func aTokenWithoutAnEndIsRefused() async {
    #expect(await refusal(TokenForge.hmac(#"{"sub":"alice"}"#)) == .malformed)
  }

  @Test(
    arguments: [
      ("-1e308", nil), ("0", nil), ("\(seconds)", nil), ("\(seconds + 60)", nil), ("\(seconds + 61)", .early),
      ("1e300", .early), ("null", nil),
    ] as [(String, TokenError?)])
  func aTokenIsGoodFromItsNotBeforeOnWithAMinuteForClocks(nbf: String, refusal expected: TokenError?) async {
    #expect(await refusal(TokenForge.hmac(claims(#""nbf":\#(nbf)"#))) == expected)
  }

  @Test(
    arguments: [
      (#""a b""#, .subject), (#""""#, .subject), (#""a/b""#, .subject), (#""\n""#, .subject), (#""\u0430""#, .subject),
      ("7", .malformed), (#"["alice"]"#, .malformed), ("null", .malformed),
    ] as [(String, TokenError)])
  func aBadIdIsRefused(sub: String, refusal expected: TokenError) async {
    #expect(await refusal(TokenForge.hmac(claims(sub: sub))) == expected)
    guard expected == .subject else { return }
    #expect(await refusal(TokenForge.hmac(claims(#""device":\#(sub)"#))) == expected)
  }

  @Test(arguments: ["[]", "[[]]", "{}", "7", "null", #""other""#, #"["other"]"#])
  func withASecretIssuerAndAudienceAreNotLookedAt(value: String) async {
    #expect(await refusal(TokenForge.hmac(claims(#""aud":\#(value),"iss":\#(value)"#))) == nil)
  }
}

import Connections
import CryptoExtras
import Foundation
import Logging
import MediaModel
import NIOCore
import Listening
import Synchronization
import Testing

@testable import ConclaveServer

private let now = Timestamp(milliseconds: 1_790_000_000_000)
private let good = #"{"sub":"alice","exp":\#(now.milliseconds / 1000 + 60),"iss":"app","aud":"conclave"}"#
private let forge = Result { try TokenForge() }

/// Tokens checked with a key set, which may change.
@Suite(.timeLimit(.minutes(5))) struct KeySetTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/keys-\(UInt64.random(in: .min ... .max))"
  private func withKeys(
    _ json: String, _ body: (KeySource, TokenAuthority, String) async throws -> Void
  ) async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = folder + "/jwks.json"
    try Data(json.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
    let source = KeySource(.file(file), log: silent)
    try await source.start()
    try await body(source, TokenAuthority(keys: source, issuer: "app", audience: "conclave"), file)
  }

  private var silent: LimitedLog { LimitedLog(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) }

  private func refusal(_ token: String, by tokens: TokenAuthority) async -> TokenError? {
    do {
      _ = try await tokens.verify(token, now: now)
      return nil
    } catch {
      return error
    }
  }

  @Test func anAlgorithmIsOneOfItsKeysType() async throws {
    let forge = try forge.get()
    try await withKeys(try forge.jwks()) { _, tokens, _ in
      for (algorithm, own) in TokenForge.algorithms {
        for id in Set(TokenForge.algorithms.values) {
          let token = try forge.token(good, algorithm, kid: id)
          #expect(await refusal(token, by: tokens) == (id == own ? nil : .algorithm), "\(algorithm) with \(id)")
        }
        // Signed with one key's algorithm, but named as another's.
        let crossed = try forge.token(
          good, algorithm == "ES256" ? "ES384" : "ES256", kid: nil,
          header: #"{"alg":"\#(algorithm)","kid":"\#(own)"}"#)
        #expect(await refusal(crossed, by: tokens) == .signature)
      }
    }
  }

  @Test(
    arguments: [
      ("auth0|5f7c", "auth0~7C5f7c"), ("google-oauth2|117", "google-oauth2~7C117"),
      ("@ann:example.org", "@ann~3Aexample.org"),
      ("a~7Cb", "a~7E7Cb"), ("Ann B", "Ann~20B"), ("ä", "~C3~A4"), ("ann@example.org", "ann@example.org"), ("", nil),
      ("guest~ann", nil), (String(repeating: "|", count: 43), nil), (String(repeating: "a", count: 129), nil),
    ] as [(String, String?)])
  func eachSubjectOfAnIssuerHasAnIdOfItsOwn(subject: String, id: String?) async throws {
    let forge = try forge.get()
    try await withKeys(try forge.jwks()) { _, tokens, _ in
      let token = try forge.token(
        good.replacingOccurrences(of: #""alice""#, with: #""\#(subject)""#), "ES256", kid: "p256")
      guard let id else { return #expect(await refusal(token, by: tokens) == .subject) }
      #expect(try await tokens.verify(token, now: now).user.text == id)
    }
  }

  @Test func anotherClaimThanSubNamesTheUser() async throws {
    let forge = try forge.get()
    try await withKeys(try forge.jwks()) { source, tokens, _ in
      let named = TokenAuthority(
        keys: source, issuer: "app", audience: "conclave", userClaim: "https://app.example/user")
      func token(_ more: String, sub: String = "auth0|5f7c") throws -> String {
        try forge.token(good.replacingOccurrences(of: #""alice""#, with: #""\#(sub)"\#(more)"#), "ES256", kid: "p256")
      }
      let right = try token(#","https://app.example/user":"ann""#)
      #expect(try await named.verify(right, now: now).user.text == "ann")
      #expect(try await tokens.verify(right, now: now).user.text == "auth0~7C5f7c", "only where it is configured")
      for wrong in [
        #","user":"ann""#, #","https://app.example/user":7"#, #","https://app.example/user":"guest~ana""#,
        #","https://app.example/user":"""#,
      ] {
        #expect(await refusal(try token(wrong), by: named) == .subject)
      }
      #expect(await refusal(try token("", sub: "alice"), by: named) == .subject, "sub does not count then")
    }
  }

  /// The public key as an HMAC secret is the classic confusion; a set of public keys takes no HMAC at all.
  @Test func aPublicKeyIsNoSecret() async throws {
    let jwks = try forge.get().jwks()
    try await withKeys(jwks) { _, tokens, _ in
      for secret in [jwks, try forge.get().rsa.publicKey.pemRepresentation] {
        for header in [#"{"alg":"HS256","kid":"rsa"}"#, #"{"alg":"none","kid":"rsa"}"#] {
          #expect(await refusal(TokenForge.hmac(good, header: header, secret: secret), by: tokens) == .algorithm)
        }
      }
    }
    let shared = #"{"keys":[{"kty":"oct","kid":"s","k":"\#(TokenForge.base64URL(TokenForge.secret.utf8))"}]}"#
    await #expect(throws: ConfigurationError.self) { try await withKeys(shared) { _, _, _ in } }
  }

  @Test func anIdNeverMeansAnotherKey() async throws {
    let forge = try forge.get()
    for ids in [["p256", "rsa"], ["p256"]] {
      try await withKeys(try forge.jwks(ids)) { _, tokens, _ in
        for kid in ["P256", "../p256", "", "zz"] {
          let token = try forge.token(good, "ES256", kid: kid)
          #expect(await refusal(token, by: tokens) == .key)
        }
        // Without an id the key is unambiguous only if there is one.
        let token = try forge.token(good, "ES256", kid: nil)
        #expect(await refusal(token, by: tokens) == (ids.count == 1 ? nil : .key))
      }
    }
  }

  @Test func theUseOfAKeyIsEnforced() async throws {
    let forge = try forge.get()
    func set(_ more: String) throws -> String {
      #"{"keys":[\#(try forge.jwk("p384")),\#(try forge.jwk("rsa", more: more))]}"#
    }
    for (more, algorithm, expected) in [
      (#","alg":"RS256""#, "RS256", nil), (#","alg":"RS256""#, "PS256", .algorithm), (#","use":"sig""#, "RS256", nil),
      (#","use":"enc""#, "RS256", .key), (#","key_ops":["verify"]"#, "RS256", nil),
      (#","key_ops":["encrypt"]"#, "RS256", .key), (#","alg":7"#, "RS256", .key),
    ] as [(String, String, TokenError?)] {
      try await withKeys(try set(more)) { _, tokens, _ in
        let token = try forge.token(good, algorithm, kid: "rsa")
        #expect(await refusal(token, by: tokens) == expected, "\(more)")
      }
    }
  }

  @Test func issuerAndAudienceMustMatch() async throws {
    let forge = try forge.get()
    try await withKeys(try forge.jwks()) { _, tokens, _ in
      let start = #"{"sub":"alice","exp":\#(now.milliseconds / 1000 + 60)"#
      for (more, expected) in [
        (#","iss":"app","aud":["x","conclave"]"#, nil), (#","iss":"app""#, .issuer), (#","aud":"conclave""#, .issuer),
        (#","iss":"app","aud":[]"#, .issuer), (#","iss":"app","aud":[["conclave"]]"#, .issuer),
        (#","iss":["app"],"aud":"conclave""#, .issuer), (#","iss":"app ","aud":"conclave""#, .issuer),
        (#","iss":"app","aud":{"conclave":1}"#, .issuer),
      ] as [(String, TokenError?)] {
        let token = try forge.token(start + more + "}", "ES256", kid: "p256")
        #expect(await refusal(token, by: tokens) == expected)
      }
    }
  }

  @Test func keysThatAreOfNoUseAreLeftOut() async throws {
    let forge = try forge.get()
    let odd = [
      "7", "{}", #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
      #"{"kty":"RSA","n":"\#(String(repeating: "A", count: 342))","e":"AQAB"}"#,
      #"{"kty":"EC","crv":"P-256","x":"\#(String(repeating: "A", count: 43))","y":"\#(String(repeating: "A", count: 43))"}"#,
      #"{"kty":"OKP","crv":"X25519","x":"\#(String(repeating: "A", count: 43))"}"#, #"{"kty":"XX","kid":"p256"}"#,
    ]
    try await withKeys(#"{"keys":[\#(odd.joined(separator: ",")),\#(try forge.jwk("p256"))]}"#) { _, tokens, _ in
      let token = try forge.token(good, "ES256", kid: nil)
      #expect(await refusal(token, by: tokens) == nil)
    }
    for json in [#"{"keys":[\#(odd.joined(separator: ","))]}"#, #"{"keys":[]}"#, #"{"keys":{}}"#, "[]", "", "{"] {
      let error = await #expect(throws: ConfigurationError.self) { try await withKeys(json) { _, _, _ in } }
      #expect(error?.description.contains("jwks.json") == true)
    }
  }

  @Test func aChangedFileIsReadAndABadOneLeavesTheLastGoodSet() async throws {
    let forge = try forge.get()
    try await withKeys(try forge.jwks(["p256"])) { source, tokens, file in
      let (first, second) = (
        try forge.token(good, "ES256", kid: "p256"), try forge.token(good, "EdDSA", kid: "ed25519")
      )
      #expect(await refusal(second, by: tokens) == .key)
      for text in ["no keys", ""] {
        try Data(text.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
        await source.read()
        #expect(await refusal(first, by: tokens) == nil)
      }
      try Data(try forge.jwks(["ed25519"]).utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
      await source.read()
      // The removed key is no longer valid.
      #expect(await refusal(first, by: tokens) == .key)
      #expect(await refusal(second, by: tokens) == nil)
      try FileManager.default.removeItem(atPath: file)
      await source.read()
      #expect(await refusal(second, by: tokens) == nil)
    }
  }

  // MARK: From a URL

  @Test func aURLIsReadAgainForAnUnknownKeyButNotForEachToken() async throws {
    let forge = try forge.get()
    let answer = Answer(try forge.jwks(["p256"]))
    let server = try await answer.serve()
    let time = Mutex(Instant(nanoseconds: 0))
    let source = KeySource(.url(server.url), log: silent, now: { time.withLock { $0 } })
    try await source.start()
    let tokens = TokenAuthority(keys: source, issuer: "app", audience: "conclave")
    let token = try forge.token(good, "ES256", kid: "p256")
    #expect(await refusal(token, by: tokens) == nil)
    #expect(server.received.count == 1)

    answer.set(try forge.jwks(["p256", "ed25519"]))
    let new = try forge.token(good, "EdDSA", kid: "ed25519")
    #expect(await refusal(new, by: tokens) == .key, "it was read a moment ago")
    time.withLock { $0 = $0.advanced(by: .seconds(11)) }
    // Many strangers at once cause one request.
    let refusals = await withTaskGroup(of: TokenError?.self) { group in
      for _ in 0..<50 { group.addTask { await refusal(new, by: tokens) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(refusals.contains(nil) && server.received.count == 2)
    #expect(await refusal(new, by: tokens) == nil)
    for round in 0..<50 {
      let token = try forge.token(good, "EdDSA", kid: "no-\(round)")
      #expect(await refusal(token, by: tokens) == .key)
    }
    #expect(server.received.count == 2)
    await server.stop()
  }

  @Test(arguments: [(500, ""), (200, "{"), (302, ""), (200, String(repeating: " ", count: (256 << 10) + 1))])
  func aURLThatFailsLeavesTheLastGoodSet(status: Int, body: String) async throws {
    let forge = try forge.get()
    let answer = Answer(try forge.jwks(["p256"]))
    let server = try await answer.serve()
    let source = KeySource(.url(server.url), log: silent)
    try await source.start()
    let tokens = TokenAuthority(keys: source, issuer: "app", audience: "conclave")
    answer.set(body, status: status)
    await source.read()
    #expect(server.received.count == 2)
    let token = try forge.token(good, "ES256", kid: "p256")
    #expect(await refusal(token, by: tokens) == nil)
    await server.stop()
  }

  /// Each byte comes in time, but the whole answer never does. Neither a login nor the next reading may wait for it.
  @Test func anAnswerByteByByteHoldsUpNoLoginAndNoLaterReading() async throws {
    let forge = try forge.get()
    let answer = Answer(try forge.jwks(["p256"]))
    let server = try await answer.serve()
    let source = KeySource(.url(server.url), log: silent)
    try await source.start()
    let tokens = TokenAuthority(keys: source, issuer: "app", audience: "conclave")
    let good = try forge.token(good, "ES256", kid: "p256")
    answer.set(String(repeating: " ", count: 10_000), drip: .milliseconds(100))
    let clock = ContinuousClock()
    let began = clock.now
    await source.read()
    let took = clock.now - began
    #expect(took > .seconds(4) && took < .seconds(40), "the whole reading has 5 s, and the answer would take 1,000 s")
    #expect(await refusal(good, by: tokens) == nil, "the last good set stays")
    #expect(await eventually { server.connections == 0 }, "nothing is held for what goes on")
    answer.set(try forge.jwks(["ed25519"]))
    await source.read()
    #expect(await refusal(good, by: tokens) == .key, "a withdrawn key is no longer good")
    await server.stop()
  }

  @Test func withoutAnAnswerNoTokenIsGoodAndTheServerStartsNevertheless() async throws {
    let answer = Answer("", status: 503)
    let server = try await answer.serve()
    let source = KeySource(.url(server.url), log: silent)
    try await source.start()
    let tokens = TokenAuthority(keys: source, issuer: "app", audience: "conclave")
    #expect(!source.hasKeys)
    let token = try forge.get().token(good, "ES256", kid: "p256")
    #expect(await refusal(token, by: tokens) == .key)
    answer.set(try forge.get().jwks(["p256"]))
    await source.read()
    #expect(await refusal(token, by: tokens) == nil)
    await server.stop()
  }
}

/// The current answer of an issuer's server.
private final class Answer: Sendable {
  private let current: Mutex<BackEndServer.Answer>

  init(_ body: String, status: Int = 200) { current = Mutex(BackEndServer.Answer(status: status, body: body)) }

  func set(_ body: String, status: Int = 200) {
    current.withLock { $0 = BackEndServer.Answer(status: status, body: body) }
  }

  func set(_ body: String, drip: TimeAmount) {
    current.withLock { $0 = BackEndServer.Answer(body: body, drip: drip) }
  }

  func serve() async throws -> BackEndServer {
    try await BackEndServer { [self] _, _ in current.withLock { $0 } }
  }
}

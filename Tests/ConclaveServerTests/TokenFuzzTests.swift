import Foundation
import Logging
import MediaModel
import Seeded
import Connections
import Listening
import Testing

@testable import ConclaveServer

/// Tokens of strangers: nothing traps, and only the issuer's own are valid.
@Suite(.timeLimit(.minutes(5))) struct TokenFuzzTests {
  private let now = Timestamp(milliseconds: 1_790_000_000_000)
  private let good = #"{"sub":"alice","exp":1790000060,"iss":"app","aud":["conclave"]}"#
  private let pieces = [
    "none", "HS256", "ES256", "RS512", "\"aud\":[]", "\"crit\":[]", "{", "}", "[", "]", "\"", ".", "..", "=", "-", "_",
    "1e999",
    "\u{0}", "null", "\\u0000",
  ]

  private func isGood(_ token: String, _ tokens: TokenAuthority) async -> Bool {
    (try? await tokens.verify(token, now: now)) != nil
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>) func aChangedTokenIsNotGood(seed: UInt64) async throws {
    let forge = try TokenForge()
    let file = FileManager.default.temporaryDirectory.path + "/fuzz-\(UInt64.random(in: .min ... .max)).json"
    defer { try? FileManager.default.removeItem(atPath: file) }
    try Data(forge.jwks().utf8).write(to: URL(fileURLWithPath: file))
    let source = KeySource(.file(file), log: LimitedLog(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    try await source.start()
    let (secret, set) = (
      TokenAuthority(secret: TokenForge.secret), TokenAuthority(keys: source, issuer: "app", audience: "conclave")
    )
    var random = SeededGenerator(seed: seed)
    var originals = [(TokenForge.hmac(good), secret)]
    for (algorithm, kid) in TokenForge.algorithms.sorted(by: { $0.key < $1.key }) {
      originals.append((try forge.token(good, algorithm, kid: kid), set))
    }
    for (token, tokens) in originals { #expect(await isGood(token, tokens), "seed \(seed)") }
    for round in 0..<2_000 {
      let (original, tokens) = originals[round % originals.count]
      let token = changed(original, &random)
      #expect(await !isGood(token, tokens) || token == original, "seed \(seed), round \(round): \(token)")
      // The other authority never accepts it, changed or not.
      #expect(await !isGood(token, round % originals.count == 0 ? set : secret), "seed \(seed), round \(round)")
    }
  }

  /// A character, a part or the text inside a part is changed.
  private func changed(_ token: String, _ random: inout SeededGenerator) -> String {
    var bytes = Array(token.utf8)
    switch Int.random(in: 0...3, using: &random) {
    case 0: bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 33...126, using: &random)
    case 1: bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random))
    case 2:
      bytes.insert(
        contentsOf: (pieces.randomElement(using: &random) ?? "").utf8,
        at: Int.random(in: 0...bytes.count, using: &random))
    default:
      var parts = token.split(separator: ".").map(String.init)
      let part = Int.random(in: 0..<parts.count, using: &random)
      var inside = [UInt8](base64URL: Array(parts[part].utf8)) ?? []
      inside.insert(
        contentsOf: (pieces.randomElement(using: &random) ?? "").utf8,
        at: Int.random(in: 0...inside.count, using: &random))
      parts[part] = TokenForge.base64URL(inside)
      return parts.joined(separator: ".")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Claims with a valid signature, as after an issuer's mistake: any JSON is read or refused.
  @Test(arguments: 1...3 as ClosedRange<UInt64>) func signedClaimsOfAnyFormAreReadOrRefused(seed: UInt64) async {
    let tokens = TokenAuthority(secret: TokenForge.secret)
    var random = SeededGenerator(seed: seed)
    let names = ["sub", "exp", "nbf", "iss", "aud", "name", "device", "scope", "roles", "x"]
    let values = [
      "[]", "{}", "null", "true", "0", "-1", "1e308", "-1e308", "9007199254740993", "1790000060", "1790000060.75",
      "9223372036854775807", "99999999999999999999", #""""#, #""alice""#, #""service""#, #"["a","b"]"#, #"[null]"#,
      #"[[[]]]"#,
    ]
    var read = 0
    for _ in 0..<3_000 {
      let members = (0..<Int.random(in: 0...8, using: &random)).map { _ in
        #""\#(names.randomElement(using: &random) ?? "")":\#(values.randomElement(using: &random) ?? "")"#
      }
      let start = Bool.random(using: &random) ? [#""sub":"alice","exp":1790000060"#] : []
      let token = TokenForge.hmac("{" + (start + members).joined(separator: ",") + "}")
      guard let claims = try? await tokens.verify(token, now: now) else { continue }
      read += 1
      #expect(claims.expiresAt > now && !claims.user.text.isEmpty, "seed \(seed)")
    }
    #expect(read > 50, "seed \(seed)")
  }

  /// A key set is chosen by the operator, but may come from another server.
  @Test(arguments: 1...3 as ClosedRange<UInt64>) func anyKeySetIsReadOrRefused(seed: UInt64) throws {
    let original = Array(try TokenForge().jwks().utf8)
    var random = SeededGenerator(seed: seed)
    var read = 0
    var refused = 0
    for _ in 0..<1_000 {
      var bytes = original
      for _ in 0...Int.random(in: 0...20, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0...2, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[place] = UInt8(ascii: "A")
        default: bytes.removeSubrange(place..<min(bytes.count, place + 30))
        }
        if bytes.isEmpty { bytes = [0] }
      }
      if (try? KeySet(json: bytes)) != nil { read += 1 } else { refused += 1 }
    }
    #expect(read > 0 && refused > 0, "seed \(seed): \(read) read, \(refused) refused")
  }
}

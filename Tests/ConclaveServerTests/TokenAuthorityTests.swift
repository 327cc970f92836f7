import Foundation
import JWTKit
import MediaModel
import Signaling
import Testing

@testable import ConclaveServer

private let secret = String(repeating: "s", count: 64)
private let now = Timestamp(milliseconds: 1_790_000_000_000)

private struct Payload: JWTPayload {
  var sub = SubjectClaim(value: "alice")
  var exp = ExpirationClaim(value: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000 + 60))
  var nbf: NotBeforeClaim?
  var device: String?
  var scope: String?
  var roles: Roles?
  var iss: IssuerClaim?
  var aud: AudienceClaim?
  func verify(using algorithm: some JWTAlgorithm) throws {}
}

@Test func aMintedTokenNamesUserDeviceNameAndTime() async throws {
  let tokens = await TokenAuthority(secret: secret)
  let user = try #require(UserID("alice"))
  let token = try await tokens.mint(user: user, device: DeviceID("laptop"), name: "Alice", expiresAt: now + .seconds(5))
  let claims = try await tokens.verify(token, now: now)
  #expect(claims.user == user)
  #expect(claims.device == DeviceID("laptop"))
  #expect(claims.name == "Alice")
  #expect(claims.expiresAt == now + .seconds(5))
  #expect(!claims.isService)
  await #expect(throws: TokenAuthority.Refusal.expired) { try await tokens.verify(token, now: now + .seconds(5)) }
}

/// The claim in whatever form.
private enum Roles: Codable {
  case one(String)
  case many([String])
  case odd([String: Int])

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .one(let name): try container.encode(name)
    case .many(let names): try container.encode(names)
    case .odd(let object): try container.encode(object)
    }
  }
}

@Test func rolesAreNamesOrASingleOne() async throws {
  let keys = JWTKeyCollection()
  await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
  let tokens = await TokenAuthority(secret: secret)
  func roles(_ roles: Roles?) async throws -> [String] {
    try await tokens.verify(try await keys.sign(Payload(roles: roles)), now: now).roles
  }
  #expect(try await roles(.many(["interpreter", "caller"])) == ["interpreter", "caller"])
  #expect(try await roles(.one("interpreter")) == ["interpreter"])
  #expect(try await roles(.odd(["conclave": 1])) == [])
  #expect(try await roles(nil) == [])
}

@Test func aTokenNamesRolesAndScope() async throws {
  let tokens = await TokenAuthority(secret: secret)
  let user = try #require(UserID("alice"))
  let token = try await tokens.mint(
    user: user, device: nil, name: nil, roles: ["nurse", "interpreter"], scope: "read service",
    expiresAt: now + .seconds(5))
  let claims = try await tokens.verify(token, now: now)
  #expect(claims.roles == ["nurse", "interpreter"] && claims.isService)
}

@Test func anotherSecretsTokenIsRefused() async throws {
  let user = try #require(UserID("alice"))
  let token = try await TokenAuthority(secret: secret + "!").mint(
    user: user, device: nil, name: nil, expiresAt: now + .seconds(5))
  let tokens = await TokenAuthority(secret: secret)
  await #expect(throws: TokenAuthority.Refusal.signature) { try await tokens.verify(token, now: now) }
}

@Test(arguments: ["", "a", "a.b", "a.b.c", ".."])
func whatIsNoTokenIsRefused(text: String) async {
  let tokens = await TokenAuthority(secret: secret)
  await #expect(throws: TokenAuthority.Refusal.malformed) { try await tokens.verify(text, now: now) }
}

@Test func anotherAlgorithmWithTheSameSecretIsRefused() async throws {
  let keys = JWTKeyCollection()
  await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha512)
  let token = try await keys.sign(Payload())
  let tokens = await TokenAuthority(secret: secret)
  await #expect(throws: TokenAuthority.Refusal.algorithm) { try await tokens.verify(token, now: now) }
}

@Test(arguments: [1.79e12, -1.0, -1e300, 1e300, 9e12 - 1])
func aTimeThatIsNoneIsRefused(seconds: Double) async throws {
  let keys = JWTKeyCollection()
  await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
  let tokens = await TokenAuthority(secret: secret)
  let token = try await keys.sign(Payload(exp: .init(value: Date(timeIntervalSince1970: seconds))))
  await #expect(throws: TokenAuthority.Refusal.malformed) { try await tokens.verify(token, now: now) }
}

@Test func aTokenIsGoodFromItsNotBeforeOnWithAMinuteForClocks() async throws {
  let keys = JWTKeyCollection()
  await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
  let tokens = await TokenAuthority(secret: secret)
  func verify(_ seconds: Double) async throws -> UserID {
    let nbf = NotBeforeClaim(value: Date(timeIntervalSince1970: Double(now.milliseconds) / 1000 + seconds))
    return try await tokens.verify(try await keys.sign(Payload(nbf: nbf)), now: now).user
  }
  for seconds in [-1e6, 0, 60] { #expect(try await verify(seconds) == UserID("alice")) }
  for seconds in [61, 1e300] {
    await #expect(throws: TokenAuthority.Refusal.early) { _ = try await verify(seconds) }
  }
}

@Test(arguments: ["a b", ""])
func aBadIdIsRefused(id: String) async throws {
  let keys = JWTKeyCollection()
  await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
  let tokens = await TokenAuthority(secret: secret)
  let token = try await keys.sign(Payload(sub: .init(value: id)))
  await #expect(throws: TokenAuthority.Refusal.subject) { try await tokens.verify(token, now: now) }
}

@Test func aKeySetTakesES256OfTheRightIssuerAndAudienceOnly() async throws {
  let key = ES256PrivateKey()
  let parameters = try #require(key.parameters)
  let jwks = """
    {"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","x":"\(parameters.x)","y":"\(parameters.y)"}]}
    """
  let tokens = try await TokenAuthority(jwks: jwks, issuer: "app", audience: "conclave")
  let keys = JWTKeyCollection()
  await keys.add(ecdsa: key)
  let good = try await keys.sign(Payload(scope: "a service", iss: "app", aud: "conclave"))
  #expect(try await tokens.verify(good, now: now).isService)
  for wrong in [Payload(), Payload(iss: "app", aud: "other"), Payload(iss: "other", aud: "conclave")] {
    let token = try await keys.sign(wrong)
    await #expect(throws: TokenAuthority.Refusal.issuer) { try await tokens.verify(token, now: now) }
  }
  // The public key as an HMAC secret is the classic confusion.
  let confused = JWTKeyCollection()
  await confused.add(hmac: HMACKey(from: jwks), digestAlgorithm: .sha256)
  let token = try await confused.sign(Payload(iss: "app", aud: "conclave"))
  await #expect(throws: TokenAuthority.Refusal.algorithm) { try await tokens.verify(token, now: now) }
}

@Test func aSecretIsMadeOnceAndForItsOwnerAlone() throws {
  let path = NSTemporaryDirectory() + "conclave-\(UInt64.random(in: .min ... .max))"
  defer { try? FileManager.default.removeItem(atPath: path) }
  let folder = try StateFolder(path)
  let first = try folder.secret(file: nil)
  let second = try folder.secret(file: nil)
  #expect(first.isNew && !second.isNew)
  #expect(first.secret == second.secret && first.secret.utf8.count >= 32)
  let mode = try FileManager.default.attributesOfItem(atPath: path + "/secret")[.posixPermissions] as? Int
  #expect(mode == 0o600)
  #expect(throws: ConfigurationError.self) { try folder.secret(file: path + "/missing") }
}

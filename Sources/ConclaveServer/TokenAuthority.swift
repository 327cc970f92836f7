import Foundation
import JWTKit
package import MediaModel
package import Signaling

/// Verifies the JWT that a client connects with (protocol section 2), and mints tokens where the secret is at hand.
package struct TokenAuthority: Sendable {
  private let keys: JWTKeyCollection
  private let algorithms: Set<String>
  private let issuer: String?
  private let audience: String?

  /// In seconds.
  private static let leeway = 60.0

  /// A token that is not good; why is for the server's own counters, never for the client or a log.
  package enum Refusal: Error, Equatable { case malformed, algorithm, signature, expired, early, issuer, subject }

  /// A shared secret: HS256.
  package init(secret: String) async {
    keys = JWTKeyCollection()
    await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
    algorithms = ["HS256"]
    issuer = nil
    audience = nil
  }

  /// A key set (RFC 7517): ES256 and RS256.
  package init(jwks json: String, issuer: String, audience: String) async throws(ConfigurationError) {
    keys = JWTKeyCollection()
    algorithms = ["ES256", "RS256"]
    self.issuer = issuer
    self.audience = audience
    do {
      var set = try JSONDecoder().decode(JWKS.self, from: Data(json.utf8))
      for index in set.keys.indices where set.keys[index].keyIdentifier == nil {
        set.keys[index].keyIdentifier = JWKIdentifier(string: "key \(index)")
      }
      try await keys.add(jwks: set)
    } catch {
      throw ConfigurationError("auth.jwksFile: not a JWK set with ES256 or RS256 keys (RFC 7517)")
    }
  }

  /// - Throws: `Refusal` unless the signature, the algorithm, the time and, with a key set, issuer and audience are right.
  package func verify(_ token: String, now: Timestamp) async throws(Refusal) -> Claims {
    guard token.utf8.count <= 8192,
      let parsed = try? DefaultJWTParser().parse(Array(token.utf8), as: Payload.self)
    else { throw .malformed }
    guard let algorithm = parsed.header.alg, algorithms.contains(algorithm) else { throw .algorithm }
    guard let claims = try? await keys.verify(token, as: Payload.self, iteratingKeys: parsed.header.kid == nil) else {
      throw .signature
    }
    // Seconds (RFC 7519 section 2): a time in milliseconds is a mistake, and larger ones would not fit our own units.
    guard (0..<9e9).contains(claims.exp.value.timeIntervalSince1970) else { throw .malformed }
    let expiresAt = Timestamp(milliseconds: Int64(claims.exp.value.timeIntervalSince1970 * 1000))
    guard expiresAt > now else { throw .expired }
    // RFC 7519 section 4.1.5; the issuer's clock may be ahead a little.
    let earliest = (claims.nbf?.value.timeIntervalSince1970 ?? 0) - Self.leeway
    guard earliest * 1000 <= Double(now.milliseconds) else { throw .early }
    guard issuer == nil || claims.iss?.value == issuer,
      audience == nil || claims.aud?.value.contains(audience ?? "") == true
    else { throw .issuer }
    guard let user = UserID(claims.sub.value) else { throw .subject }
    var device: DeviceID?
    if let text = claims.device {
      device = DeviceID(text)
      guard device != nil else { throw .subject }
    }
    return Claims(
      user: user, name: claims.name, device: device,
      isService: claims.scope?.split(separator: " ").contains("service") == true,
      roles: claims.roles?.names ?? [], expiresAt: expiresAt)
  }

  /// A token for `user`, valid until `expiresAt`. Only with a shared secret.
  package func mint(
    user: UserID, device: DeviceID?, name: String?, roles: [String] = [], scope: String? = nil, expiresAt: Timestamp
  ) async throws -> String {
    let expiry = Date(timeIntervalSince1970: Double(expiresAt.milliseconds) / 1000)
    return try await keys.sign(
      Payload(
        sub: .init(value: user.text), exp: .init(value: expiry), name: name, device: device?.text,
        scope: scope, roles: roles.isEmpty ? nil : Roles(names: roles)))
  }

  /// The claim `roles`: names, or a single one. In another form it is another issuer's matter, and nobody is kept out for it.
  private struct Roles: Codable {
    var names: [String]

    init(names: [String]) { self.names = names }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let name = try? container.decode(String.self) {
        names = [name]
      } else {
        names = (try? container.decode([String].self)) ?? []
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(names)
    }
  }

  private struct Payload: JWTPayload {
    var sub: SubjectClaim
    var exp: ExpirationClaim
    var nbf: NotBeforeClaim?
    var name: String?
    var device: String?
    var scope: String?
    var roles: Roles?
    var iss: IssuerClaim?
    var aud: AudienceClaim?

    /// The time is compared in `TokenAuthority.verify`, which has it as an argument.
    func verify(using algorithm: some JWTAlgorithm) throws {}
  }
}

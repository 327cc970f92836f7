import Contract
import Cryptography
import JSON
package import MediaModel
package import Connections

/// Verifies the JWT with which a client connects (protocol section 2), and mints tokens if the secret is available.
///
/// ## Overview
/// First the form, then the key, then the signature, then the claims: nothing that a stranger wrote is treated as a
/// claim.
package struct TokenAuthority: Sendable {
  private enum Keys: Sendable {
    case secret(SecretKey)
    /// The server's own, for the tokens of guests.
    case guests(SecretKey)
    case set(KeySource, issuer: String, audience: String, userClaim: String?)
  }

  private let keys: Keys

  /// The issuer's clock may be slightly ahead (RFC 7519 section 4.1.5).
  private static let leeway = Duration.seconds(60)

  /// A shared secret: HS256, and also HS384 and HS512 if it is as long as their digests.
  package init(secret: String) { keys = .secret(SecretKey(secret.utf8)) }

  /// For guests only. Their tokens have a separate key, so that neither this server's tokens nor the app's are valid for the
  /// other.
  package init(guestSecret: String) { keys = .guests(SecretKey(guestSecret.utf8)) }

  /// A key set: `iss` and `aud` of each token must match.
  /// - Parameter userClaim: the claim with the user's id, for issuers whose `sub` is not an id of the protocol; nil for
  ///   `sub`.
  init(keys source: KeySource, issuer: String, audience: String, userClaim: String? = nil) {
    keys = .set(source, issuer: issuer, audience: audience, userClaim: userClaim)
  }

  /// - Throws: `TokenError` unless the signature, the algorithm, the time and, with a key set, issuer and audience are right.
  package func verify(_ text: String, now: Timestamp) async throws(TokenError) -> Claims {
    let token = try SignedToken(text)
    let key = try await key(for: token)
    guard key.isSignature(token.signature, for: token.signedBytes, by: token.algorithm) else { throw .signature }
    let payload = try token.claims(Payload.self)
    let expiresAt = try payload.expiry(now: now)
    var user = UserID(payload.sub)
    if case .set(_, let issuer, let audience, let userClaim) = keys {
      guard payload.iss == issuer, payload.aud.names.contains(audience) else { throw .issuer }
      var subject: String? = payload.sub
      if let userClaim { subject = try token.claims(Texts.self).texts[userClaim] }
      user = subject.flatMap(UserID.init(subject:))
    }
    guard let user, user.isGuest == isForGuests else { throw .subject }
    let call = isForGuests ? payload.call.flatMap(CallID.init) : nil
    guard isForGuests == (call != nil) else { throw .subject }
    let device = payload.device.flatMap(DeviceID.init)
    guard (device == nil) == (payload.device == nil) else { throw .subject }
    return Claims(
      // A bad name is the issuer's fault and not the client's: the user is then shown by id.
      user: user, name: payload.name.flatMap { $0.isDisplayName ? $0 : nil }, device: device,
      isService: payload.scope.names.contains { $0.split(separator: " ").contains("service") },
      roles: payload.roles.names,
      guestOf: call, expiresAt: expiresAt)
  }

  private var isForGuests: Bool { if case .guests = keys { true } else { false } }

  private func key(for token: SignedToken) async throws(TokenError) -> VerificationKey {
    switch keys {
    case .secret(let key), .guests(let key):
      let key = VerificationKey.secret(key)
      guard key.accepts(token.algorithm) else { throw .algorithm }
      return key
    case .set(let source, _, _, _): return try await source.key(for: token)
    }
  }

  /// A token for `user`, valid until `expiresAt`.
  /// - Throws: `ConfigurationError` with a key set: its private keys are the issuer's.
  package func mint(
    user: UserID, device: DeviceID?, name: String?, roles: [String] = [], scope: String? = nil,
    guestOf call: CallID? = nil,
    expiresAt: Timestamp
  ) throws -> String {
    let key: SecretKey
    switch keys {
    case .secret(let secret), .guests(let secret): key = secret
    case .set: throw ConfigurationError("a key set has public keys only")
    }
    guard user.isGuest == isForGuests, isForGuests == (call != nil) else {
      throw ConfigurationError("ids that begin with \(UserID.guestPrefix) are of guests, who come by a link")
    }
    let claims = Minted(
      sub: user.text, exp: expiresAt.milliseconds / 1000, name: name, device: device?.text, scope: scope,
      call: call?.text, roles: roles.isEmpty ? nil : roles)
    let signed = Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8).base64URL + "." + (try JSONCoding.encode(claims)).base64URL
    return signed + "." + HashAlgorithm.sha256.authenticationCode(of: signed.utf8, key: key).base64URL
  }

  private struct Minted: Encodable {
    var sub: String
    var exp: Int64
    var name, device, scope, call: String?
    var roles: [String]?
  }

  /// Claims that matter here (RFC 7519 section 4.1, protocol section 2).
  private struct Payload: Decodable {
    var sub: String
    /// In seconds, including fractions (RFC 7519 section 2).
    var exp: Double
    var nbf: Double?
    var name, device, iss, call: String?
    /// `scope` is a text (RFC 8693 section 4.2), but a list with some issuers.
    var roles, aud, scope: Names

    private enum CodingKeys: CodingKey { case sub, exp, nbf, name, device, scope, call, roles, iss, aud }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      sub = try container.decode(String.self, forKey: .sub)
      exp = try container.decode(Double.self, forKey: .exp)
      nbf = try container.decodeIfPresent(Double.self, forKey: .nbf)
      name = try container.decodeIfPresent(String.self, forKey: .name)
      device = try container.decodeIfPresent(String.self, forKey: .device)
      scope = try container.decodeIfPresent(Names.self, forKey: .scope) ?? Names()
      // A private claim of another issuer, except in the tokens of guests.
      call = try? container.decodeIfPresent(String.self, forKey: .call)
      roles = try container.decodeIfPresent(Names.self, forKey: .roles) ?? Names()
      iss = try? container.decodeIfPresent(String.self, forKey: .iss)
      aud = try container.decodeIfPresent(Names.self, forKey: .aud) ?? Names()
    }

    func expiry(now: Timestamp) throws(TokenError) -> Timestamp {
      // In seconds: a time in milliseconds is a mistake, and larger values would not fit our own units.
      guard (0..<9e9).contains(exp) else { throw .malformed }
      let expiry = Timestamp(milliseconds: Int64(exp * 1000))
      guard expiry > now else { throw .expired }
      guard (nbf ?? 0) * 1000 <= Double((now + TokenAuthority.leeway).milliseconds) else { throw .early }
      return expiry
    }
  }

  /// The claims whose values are texts.
  private struct Texts: Decodable {
    var texts: [String: String] = [:]

    private struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      for key in container.allKeys { texts[key.stringValue] = try? container.decode(String.self, forKey: key) }
    }
  }

  /// A claim that contains names, or a single one. In another form it contains none: for `roles` and `scope` that is a matter of the issuer, and `aud` then does not
  /// match.
  private struct Names: Decodable {
    var names: [String] = []

    init() {}

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let name = try? container.decode(String.self) {
        names = [name]
      } else {
        names = (try? container.decode([String].self)) ?? []
      }
    }
  }
}

/// Why a token is not valid: only for the server's own counters and log, never for the client.
package enum TokenError: String, Error, Sendable {
  case malformed, critical, algorithm, key, signature, expired, early, issuer, subject
}

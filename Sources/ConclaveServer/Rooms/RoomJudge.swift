import Connections
import Contract
import Cryptography
import JanusAPI
import JanusFront
import MediaModel

/// Judges the secrets of requests for rooms: the API secret, signed tokens, and users' own tokens.
struct RoomJudge: JanusJudge {
  /// The secret, and its own code by it.
  private let apiSecret: (key: SecretKey, code: [UInt8])?
  private let tokenSecret: SecretKey?
  /// nil if users' tokens are not accepted.
  private let authenticator: BearerAuthenticator?
  private let clock: WallClock

  init(
    _ secrets: (api: [UInt8]?, token: [UInt8]?), authenticator: BearerAuthenticator?, clock: WallClock
  ) {
    apiSecret = secrets.api.map { secret in
      let key = SecretKey(secret)
      return (key, HashAlgorithm.sha256.authenticationCode(of: secret, key: key))
    }
    tokenSecret = secrets.token.map { SecretKey($0) }
    self.authenticator = authenticator
    self.clock = clock
  }

  func grant(for secrets: JanusSecrets) async -> Grant {
    var grant = Grant(hasSecret: isAPISecret(secrets.apiSecret))
    if let token = secrets.token { grant.token = await judge(token, realm: "janus") }
    if let token = secrets.bodyToken { grant.bodyToken = await judge(token, realm: RoomJudge.plugin) }
    return grant
  }

  private static let plugin = "janus.plugin.videoroom"

  /// Codes are compared, so that the time tells nothing about the secret.
  private func isAPISecret(_ given: String?) -> Bool {
    guard let given, let (key, code) = apiSecret else { return false }
    return HashAlgorithm.sha256.isAuthenticationCode(code, of: given.utf8, key: key)
  }

  private func judge(_ token: String, realm: String) async -> TokenGrant? {
    if let grant = signed(token, realm: realm) { return grant }
    // A user's token is a JWT: three parts.
    guard let authenticator, token.utf8.count(where: { $0 == UInt8(ascii: ".") }) == 2,
      let claims = await authenticator.claims(of: token), !claims.user.isGuest
    else { return nil }
    return TokenGrant(identity: claims.user.text, isAdministrator: claims.isService)
  }

  /// `EXPIRY,REALM,DESCRIPTOR…:SIGNATURE`, as Janus's own tokens are: the expiry in seconds since 1970, and base64 of HMAC-SHA1 of the text before the
  /// colon. The descriptors are plugins, or `room=ID` in the realm of the videoroom.
  private func signed(_ token: String, realm: String) -> TokenGrant? {
    let parts = token.split(separator: ":", omittingEmptySubsequences: false)
    guard let tokenSecret, parts.count == 2, let signature = Base64Bytes(base64: String(parts[1])),
      HashAlgorithm.sha1.isAuthenticationCode(signature.bytes, of: parts[0].utf8, key: tokenSecret)
    else { return nil }
    let words = parts[0].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    guard words.count >= 3, let expiry = Int64(words[0]), words[1] == realm,
      clock.machineTime().milliseconds / 1_000 < expiry
    else { return nil }
    guard realm == Self.plugin else { return TokenGrant(coversVideoRoom: words[2...].contains(Self.plugin)) }
    let rooms = words[2...].filter { $0.hasPrefix("room=") }.map { String($0.dropFirst("room=".utf8.count)) }
    return TokenGrant(rooms: Set(rooms))
  }
}

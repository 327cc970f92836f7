import Logging
import MediaModel
import Connections
import Listening

/// A client's token, verified with the configured secret or key set, at the time of the server's clock.
final class BearerAuthenticator: Authenticator {
  let tokens: TokenAuthority
  /// nil if guests are not admitted.
  let guests: TokenAuthority?
  let secretIsNew: Bool
  private let clock: WallClock
  private let log: LimitedLog
  private let keys: KeySource?
  private let watching: Task<Void, Never>?

  /// - Throws: `ConfigurationError` if the secret or the key set's file cannot be used.
  init(
    _ configuration: Configuration, _ folder: StateFolder, clock: WallClock, log: LimitedLog
  ) async throws(ConfigurationError) {
    self.clock = clock
    self.log = log
    guests =
      configuration.guests
      ? TokenAuthority(guestSecret: try folder.secret(file: nil, default: "guest-secret").secret) : nil
    let auth = configuration.auth
    if let origin = auth.jwksFile.map(KeySource.Origin.file) ?? auth.jwksURL.map(KeySource.Origin.url) {
      let keys = KeySource(origin, log: log)
      try await keys.start()
      tokens = TokenAuthority(
        keys: keys, issuer: auth.issuer ?? "", audience: auth.audience ?? "", userClaim: auth.userClaim)
      secretIsNew = false
      self.keys = keys
      watching = Task { await keys.watch() }
    } else {
      let (secret, isNew) = try folder.secret(file: auth.secretFile)
      tokens = TokenAuthority(secret: secret)
      secretIsNew = isNew
      keys = nil
      watching = nil
    }
  }

  deinit { watching?.cancel() }

  /// Why no token can be verified now; nil if tokens can be verified.
  var failure: String? {
    keys?.hasKeys == false ? "no key set could be read from auth.jwksURL yet, so no token can be verified" : nil
  }

  func claims(of token: String) async -> Claims? {
    let isGuest = token.hasPrefix(UserID.guestPrefix)
    guard let authority = isGuest ? guests : tokens else { return nil }
    do {
      return try await authority.verify(
        isGuest ? String(token.dropFirst(UserID.guestPrefix.count)) : token, now: clock.machineTime())
    } catch {
      log.log(.login, .info, "a token was refused", ["reason": "\(error.rawValue)"])
      return nil
    }
  }
}

import Contract
import Cryptography
import MediaModel

/// Credentials for a TURN server that shares a secret with us (draft-uberti-behave-turn-rest-00; coturn's `use-auth-secret`).
struct TURNCredentials: Sendable {
  private let urls: [String]
  private let secret: SecretKey?
  private let lifetime: Duration

  /// - Throws: `ConfigurationError` if the secret cannot be read.
  init(_ configuration: Configuration.TURN) throws(ConfigurationError) {
    urls = configuration.urls
    secret = try configuration.secret.map { secret throws(ConfigurationError) in
      SecretKey(try secret.bytes("turn", minimum: 16))
    }
    lifetime = .seconds(configuration.seconds)
  }

  /// STUN servers need no credentials. They are listed separately, because some clients send an entry's credentials to
  /// all of its servers.
  func ice(for user: UserID, now: Timestamp) -> ICE {
    let turn = urls.filter { $0.hasPrefix("turn") }
    let stun = urls.filter { $0.hasPrefix("stun") }
    var servers: [ICEServer] = []
    if !stun.isEmpty { servers.append(ICEServer(urls: stun)) }
    if !turn.isEmpty, let secret {
      let name = "\((now + lifetime).milliseconds / 1000):\(user.text)"
      let code = HashAlgorithm.sha1.authenticationCode(of: name.utf8, key: secret)
      servers.append(ICEServer(urls: turn, username: name, credential: Base64Bytes(code).base64))
    }
    return ICE(servers: servers)
  }
}

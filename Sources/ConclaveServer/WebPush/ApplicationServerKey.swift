import Cryptography
import Foundation
import MediaModel

/// The key pair by which push services know this server (RFC 8292).
struct ApplicationServerKey: Sendable {
  private let key: P256PrivateKey
  /// The address at which a push service can reach the operator: a `mailto:` or `https:` URL.
  private let contact: String
  /// A push service accepts a token for at most 24 hours (RFC 8292 section 2).
  static let tokenLifetime = Duration.seconds(12 * 3_600)

  init(_ key: P256PrivateKey, contact: String) {
    self.key = key
    self.contact = contact
  }

  /// An uncompressed point.
  var publicKey: [UInt8] { key.publicKey }

  /// The value of `Authorization` for a push service, by its origin.
  func authorization(for origin: String, now: Timestamp) throws -> String {
    let expiry = (now + Self.tokenLifetime).milliseconds / 1_000
    let claims = Claims(aud: origin, exp: expiry, sub: contact)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let signed =
      Array(#"{"typ":"JWT","alg":"ES256"}"#.utf8).base64URL + "." + Array(try encoder.encode(claims)).base64URL
    let signature = key.signature(of: signed.utf8)
    return "vapid t=\(signed).\(signature.base64URL), k=\(publicKey.base64URL)"
  }

  private struct Claims: Encodable {
    var aud: String
    var exp: Int64
    var sub: String
  }
}

extension StateFolder {
  /// The private key of Web Push, in the file `push-key` with mode 600; created if that is missing. Subscriptions belong to this key: with another one browsers have
  /// to subscribe again.
  func pushKey() throws(ConfigurationError) -> P256PrivateKey {
    if let key = try Self.storedPushKey(in: path) { return key }
    let name = path + "/push-key"
    let key = P256PrivateKey()
    guard
      FileManager.default.createFile(
        atPath: name, contents: Data(key.pem), attributes: [.posixPermissions: 0o600])
    else { throw ConfigurationError("\(name): cannot be written; check the folder's mode, and that its disk has room") }
    return key
  }

  /// nil if there is none.
  /// - Throws: `ConfigurationError` for a file that cannot be read, or does not contain a key.
  static func storedPushKey(in folder: String) throws(ConfigurationError) -> P256PrivateKey? {
    let name = folder + "/push-key"
    guard let text = FileManager.default.contents(atPath: name) else {
      guard !FileManager.default.fileExists(atPath: name) else {
        throw ConfigurationError("\(name): cannot be read; check its mode")
      }
      return nil
    }
    try Configuration.checkOwnerOnly(name)
    guard let key = P256PrivateKey(pem: Array(text)) else {
      throw ConfigurationError("\(name): is no private key of P-256 (PEM); restore it, or remove it for a new one")
    }
    return key
  }
}

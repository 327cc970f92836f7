import CallMessages
import Contract
import MediaModel
import Octets

/// The key of a call's links. A token is its expiry and an HMAC over call and expiry, in base64url; a new key voids all earlier tokens.
struct CallLinks {
  static let lifetimes = 60...86_400
  static let defaultLifetime = 3_600
  private static let tokenLength = 54

  /// 32 random bytes.
  var key: [UInt8]
  /// The latest expiry of the links made with the key.
  var validUntil: Timestamp

  init(key: [UInt8], now: Timestamp) {
    self.key = key
    validUntil = now
  }

  init(_ stored: StoredLinks) {
    key = stored.key.bytes
    validUntil = stored.validUntil
  }

  var stored: StoredLinks { StoredLinks(key: Base64Bytes(key), validUntil: validUntil) }

  mutating func make(for call: CallID, until expiry: Timestamp, hashing: Hashing) -> CallLink {
    validUntil = max(validUntil, expiry)
    let time = expiry.milliseconds.networkOrderBytes
    let token = Base64Bytes(time + hashing.authenticationCode(Self.message(call, time), key)).base64
    let text = token.filter { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
    return CallLink(link: String(text), expiresAt: expiry)
  }

  func isValid(_ token: String, for call: CallID, now: Timestamp, hashing: Hashing) -> Bool {
    guard token.utf8.count == Self.tokenLength, !token.contains("+"), !token.contains("/") else { return false }
    let text = String(token.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }) + "=="
    guard let bytes = Base64Bytes(base64: text)?.bytes, bytes.count == 40 else { return false }
    let time = Array(bytes.prefix(8))
    let isAuthentic = hashing.isValid(Array(bytes.dropFirst(8)), Self.message(call, time), key)
    return isAuthentic && now.milliseconds < Int64(networkOrder: time)
  }

  /// The bytes that the HMAC covers: label, expiry and call.
  private static func message(_ call: CallID, _ time: [UInt8]) -> [UInt8] {
    Array("conclave-link-v1".utf8) + time + Array(call.text.utf8)
  }
}

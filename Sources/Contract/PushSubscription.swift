package import MediaModel

/// A browser's push subscription (Push API, "PushSubscription"), to which the server may send.
package struct PushSubscription: Codable, Sendable, Hashable {
  /// The capability to send to the browser: as secret as a password.
  package var endpoint: String
  /// The browser's P-256 point, uncompressed: 65 bytes.
  package var p256dh: Base64Bytes
  /// 16 bytes.
  package var auth: Base64Bytes
  package init(endpoint: String, p256dh: Base64Bytes, auth: Base64Bytes) {
    self.endpoint = endpoint
    self.p256dh = p256dh
    self.auth = auth
  }
}

extension PushSubscription: CustomStringConvertible { package var description: String { "subscription" } }

package struct SubscribePush: Codable, Sendable {
  /// Replaces the device's subscription; nil removes it.
  package var subscription: PushSubscription?
  package init(subscription: PushSubscription?) { self.subscription = subscription }
}

/// The encrypted content of a push: the facts that a closed page needs to show a ring, a message or an alert.
package struct PushNotice: Codable, Sendable, Hashable {
  package enum Kind: String, Codable, Sendable {
    case ring
    case ringOver = "ring-over"
    /// Somebody sent a recording.
    case message
    /// Somebody needs this user now.
    case alert
  }
  /// A longer name is omitted, because the content has a fixed length.
  package static let maximumNameBytes = 96

  package var type: Kind
  /// The call of a ring, or of its end.
  package var call: String?
  /// The recording of a message or an alert.
  package var recording: RecordingID?
  /// The user who rings, or sent it; not of the end of a ring.
  package var from: String?
  /// That user's name, if it has one.
  package var name: String?
  /// Only of a ring.
  package var media: CallMedia?
  package init(
    type: Kind, call: String? = nil, recording: RecordingID? = nil, from: String? = nil, name: String? = nil,
    media: CallMedia? = nil
  ) {
    self.type = type
    self.call = call
    self.recording = recording
    self.from = from
    self.name = name
    self.media = media
  }

  /// The call or recording that it is about: a later push about the same replaces an earlier one.
  package var subject: String { call ?? recording?.text ?? "" }
}

extension PushNotice: CustomStringConvertible { package var description: String { "notice" } }

/// The URL of a push subscription, parsed strictly: it is hostile input to which the server will connect. `https://host[:port]/path`, without a user, a fragment,
/// white space or characters beyond ASCII.
package struct PushEndpoint: Sendable, Hashable {
  package static let maximumBytes = 2_048

  /// A name in lower case, or an address; an IPv6 address is without brackets.
  package var host: String
  package var port: UInt16
  /// Path and query, as sent.
  package var target: String
  private var isIPv6: Bool

  /// nil if the text is not such a URL.
  package init?(_ text: String) {
    let scheme = "https://"
    guard text.utf8.count <= Self.maximumBytes, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
      text.hasPrefix(scheme)
    else { return nil }
    let rest = text.dropFirst(scheme.count)
    guard !rest.contains(where: { "#\\\"<>^`{|}".contains($0) }) else { return nil }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    target = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
    let authority = rest[..<end]
    let port: Substring
    if authority.hasPrefix("[") {
      guard let close = authority.firstIndex(of: "]") else { return nil }
      let address = authority[authority.index(after: authority.startIndex)..<close]
      guard address.contains(":"), address.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else { return nil }
      (isIPv6, host, port) = (true, address.lowercased(), authority[authority.index(after: close)...])
    } else {
      let name = authority.prefix { $0 != ":" }
      guard Self.isName(name) else { return nil }
      (isIPv6, host, port) = (false, name.lowercased(), authority[name.endIndex...])
    }
    guard !port.isEmpty else {
      self.port = 443
      return
    }
    let digits = port.dropFirst()
    guard port.hasPrefix(":"), digits.count <= 5, digits.allSatisfy({ $0.isNumber }), let number = UInt16(digits),
      number > 0
    else { return nil }
    self.port = number
  }

  /// The value of the header `Host`.
  package var authority: String {
    let name = isIPv6 ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// As in the claim `aud` of RFC 8292 section 2.
  package var origin: String { "https://\(authority)" }

  /// Labels of letters, digits, hyphens and underscores. If the last label consists of digits, it must be a plain IPv4 address with four numbers: other notations
  /// (`127.1`, `0x7f.1`) are refused.
  private static func isName(_ name: Substring) -> Bool {
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...253).contains(name.utf8.count),
      labels.allSatisfy({ label in
        (1...63).contains(label.utf8.count)
          && label.allSatisfy { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
      }), let last = labels.last
    else { return false }
    guard last.first?.isNumber == true else { return true }
    return labels.count == 4
      && labels.allSatisfy { label in
        guard let byte = UInt8(label) else { return false }
        return String(byte) == label
      }
  }
}

extension PushEndpoint: CustomStringConvertible { package var description: String { "endpoint" } }

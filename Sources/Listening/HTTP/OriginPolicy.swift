/// Which web pages may open a WebSocket. A browser always sends a page's `Origin`; a client that sends none is not a browser and has no user's cookies to
/// abuse.
package enum OriginPolicy: Sendable {
  /// The origins that browsers send for pages without a host: of a file inside an app, or in a sandboxed frame (RFC 6454 section 6.1).
  package static let hostless: Set<String> = ["null", "file://"]

  /// Pages of the host that the request names, and of the given origins (`https://app.example`, or one of `hostless`).
  case sameHost(also: [String])
  case any

  func allows(origin: String?, host: String?) -> Bool {
    guard let origin else { return true }
    guard !names(origin) else { return true }
    guard let origin = WebOrigin(origin), let host = host?.lowercased() else { return false }
    // A proxy before us may have terminated the TLS, so only the authorities are compared. Behind it the default port may be that of either
    // scheme.
    return origin.authority == host || origin.authority == WebOrigin.withoutPort(host, of: [80, 443])
  }

  /// Whether pages of this origin are admitted on every host, so that they may read answers, too.
  package func names(_ origin: String) -> Bool {
    switch self {
    case .any: true
    case .sameHost(let others):
      others.contains { other in
        other.lowercased() == origin.lowercased() || WebOrigin(other).map { $0 == WebOrigin(origin) } ?? false
      }
    }
  }
}

/// An origin of web pages (RFC 6454): scheme, host and port. Clients other than browsers send `ws` and `wss`, which are equivalent to `http` and
/// `https`. Pages inside an app have special schemes (`capacitor://localhost`).
package struct WebOrigin: Hashable, Sendable {
  let scheme: String
  /// In lower case, with the port unless it is the scheme's default.
  package let authority: String

  private static let ports = ["http": 80, "https": 443]

  /// `scheme://host[:port]` in any case of letters; nil for any other text.
  package init?(_ text: String) {
    let text = text.lowercased()
    guard let separator = text.firstRange(of: "://") else { return nil }
    let written = String(text[..<separator.lowerBound])
    scheme = ["ws": "http", "wss": "https"][written] ?? written
    let authority = text[separator.upperBound...]
    guard Self.isScheme(scheme), Self.isAuthority(authority) else { return nil }
    self.authority = Self.withoutPort(String(authority), of: Self.ports[scheme].map { [$0] } ?? [])
  }

  /// The origin as browsers send it.
  package var text: String { "\(scheme)://\(authority)" }

  static func withoutPort(_ authority: String, of ports: [Int]) -> String {
    for port in ports where authority.hasSuffix(":\(port)") { return String(authority.dropLast("\(port)".count + 1)) }
    return authority
  }

  /// RFC 3986 section 3.1.
  private static func isScheme(_ text: String) -> Bool {
    guard let first = text.utf8.first, first >= UInt8(ascii: "a") else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: "+-.".utf8.contains(byte)
      }
    }
  }

  /// A name or address, and optionally a port (RFC 3986 section 3.2).
  private static func isAuthority(_ text: Substring) -> Bool {
    guard let first = text.first, first != ":" else { return false }
    let afterAddress = first == "[" ? text.firstIndex(of: "]").map { text[text.index(after: $0)...] } : text
    guard let afterAddress else { return false }
    let parts = afterAddress.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    if first == "[", !(parts.first?.isEmpty ?? true) { return false }
    if parts.count == 2, UInt16(parts[1]) == nil { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: "-._~[]:".utf8.contains(byte)
      }
    }
  }
}

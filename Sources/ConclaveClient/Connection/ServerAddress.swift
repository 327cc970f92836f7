/// Where a server accepts STOMP: on a TCP port, or in a WebSocket, as behind a web proxy.
public struct ServerAddress: Sendable, Hashable {
  /// Host name or address.
  public var host: String
  /// TCP port: usually 443 for a WebSocket, otherwise 61613, or 61614 with TLS.
  public var port: Int
  /// Whether the connection is encrypted and the server's certificate checked.
  public var usesTLS: Bool
  /// The path of the WebSocket, with its query if it has one; nil for STOMP over TCP without a WebSocket.
  public var webSocketPath: String?

  /// An address from its parts.
  public init(host: String, port: Int, usesTLS: Bool, webSocketPath: String? = nil) {
    self.host = host
    self.port = port
    self.usesTLS = usesTLS
    self.webSocketPath = webSocketPath
  }

  /// Reads `wss://host[:443][/stomp]`, `ws://host[:80][/stomp]`, `stomps://host[:61614]` or `stomp://host[:61613]`, an IPv6 address in brackets; nil if it is
  /// none of these.
  public init?(_ url: String) {
    guard let scheme = Scheme.all.first(where: { url.hasPrefix($0.prefix) }) else { return nil }
    var rest = url.dropFirst(scheme.prefix.count)
    let path = rest[(rest.firstIndex(of: "/") ?? rest.endIndex)...]
    rest = rest[..<path.startIndex]
    guard path.isEmpty || path == "/" || scheme.isWebSocket && Self.isPath(path) else { return nil }
    port = scheme.port
    let hostEnd = rest.first == "[" ? rest.firstIndex(of: "]").map(rest.index(after:)) : rest.firstIndex(of: ":")
    guard rest.first != "[" || hostEnd != nil else { return nil }
    if let hostEnd, hostEnd < rest.endIndex {
      guard rest[hostEnd] == ":", let port = UInt16(rest[rest.index(after: hostEnd)...]) else { return nil }
      self.port = Int(port)
      rest = rest[..<hostEnd]
    }
    host = String(rest.first == "[" ? rest.dropFirst().dropLast() : rest)
    guard !host.isEmpty, !scheme.isWebSocket || host.utf8.allSatisfy(Self.isOfAuthority) else { return nil }
    usesTLS = scheme.usesTLS
    webSocketPath = scheme.isWebSocket ? (path.count > 1 ? String(path) : "/stomp") : nil
  }

  private struct Scheme {
    let prefix: String
    let port: Int
    let usesTLS: Bool
    let isWebSocket: Bool

    static let all = [
      Scheme(prefix: "stomp://", port: 61613, usesTLS: false, isWebSocket: false),
      Scheme(prefix: "stomps://", port: 61614, usesTLS: true, isWebSocket: false),
      Scheme(prefix: "ws://", port: 80, usesTLS: false, isWebSocket: true),
      Scheme(prefix: "wss://", port: 443, usesTLS: true, isWebSocket: true),
    ]
  }

  /// A request line has no room for other characters (RFC 9112 section 3), and a fragment is not sent.
  private static func isPath(_ text: Substring) -> Bool {
    text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
  }

  /// Whether a name or an address may contain this character. A user and a password would not be sent.
  private static func isOfAuthority(_ character: UInt8) -> Bool {
    (0x21...0x7E).contains(character) && !"@?#/\\".utf8.contains(character)
  }
}

extension ServerAddress {
  /// The text of a request's `Host`: the port only if it is not the scheme's default (RFC 9110 section 7.2).
  var authority: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port == (usesTLS ? 443 : 80) ? host : "\(host):\(port)"
  }

  /// The name that the certificate must have; nil if the host is an address.
  var certificateName: String? { host.contains(where: \.isLetter) && !host.contains(":") ? host : nil }
}

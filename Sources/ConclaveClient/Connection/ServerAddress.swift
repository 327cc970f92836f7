/// Where a server's STOMP port is.
public struct ServerAddress: Sendable, Hashable {
  /// Host name or address.
  public var host: String
  /// TCP port: usually 61613, or 61614 with TLS.
  public var port: Int
  /// Whether the connection is encrypted and the server's certificate checked.
  public var usesTLS: Bool

  /// An address from its parts.
  public init(host: String, port: Int, usesTLS: Bool) {
    self.host = host
    self.port = port
    self.usesTLS = usesTLS
  }

  /// Reads `stomp://host[:61613]` or `stomps://host[:61614]`, an IPv6 address in brackets; nil when it is neither.
  public init?(_ url: String) {
    var rest: Substring
    if url.hasPrefix("stomp://") {
      usesTLS = false
      rest = url.dropFirst("stomp://".count)
    } else if url.hasPrefix("stomps://") {
      usesTLS = true
      rest = url.dropFirst("stomps://".count)
    } else {
      return nil
    }
    if rest.last == "/" { rest.removeLast() }
    port = usesTLS ? 61614 : 61613
    let hostEnd = rest.first == "[" ? rest.firstIndex(of: "]").map(rest.index(after:)) : rest.firstIndex(of: ":")
    if let hostEnd, hostEnd < rest.endIndex {
      guard rest[hostEnd] == ":", let port = UInt16(rest[rest.index(after: hostEnd)...]) else { return nil }
      self.port = Int(port)
      rest = rest[..<hostEnd]
    }
    host = String(rest.first == "[" ? rest.dropFirst().dropLast() : rest)
    guard !host.isEmpty else { return nil }
  }
}

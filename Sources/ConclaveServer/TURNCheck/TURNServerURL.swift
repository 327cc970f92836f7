/// A `turn:`, `turns:`, `stun:` or `stuns:` URL in its parts (RFC 7064, RFC 7065).
struct TURNServerURL: Sendable, Hashable {
  enum TransportKind: Sendable { case udp, tcp, tls }

  let text: String
  let host: String
  let port: Int
  let transport: TransportKind
  /// Whether it relays; STUN only tells a client its address.
  let isTURN: Bool

  /// nil unless it is such a URL, and for one of DTLS, which browsers do not use.
  init?(_ text: String) {
    self.text = text
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let scheme = text[..<colon]
    guard ["turn", "turns", "stun", "stuns"].contains(scheme) else { return nil }
    let parts = text[text.index(after: colon)...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let isSecure = scheme.hasSuffix("s")
    isTURN = scheme.hasPrefix("turn")
    switch (parts.count > 1 ? parts[1] : nil, isSecure) {
    case (nil, false), ("transport=udp", false): transport = .udp
    case ("transport=tcp", false): transport = .tcp
    case (nil, true), ("transport=tcp", true): transport = .tls
    default: return nil
    }
    var place = parts[0]
    let hostEnd = place.first == "[" ? place.firstIndex(of: "]").map(place.index(after:)) : place.firstIndex(of: ":")
    guard place.first != "[" || hostEnd != nil else { return nil }
    var port = isSecure ? 5349 : 3478
    if let hostEnd, hostEnd < place.endIndex {
      guard place[hostEnd] == ":", let given = UInt16(place[place.index(after: hostEnd)...]), given > 0 else {
        return nil
      }
      port = Int(given)
      place = place[..<hostEnd]
    }
    self.port = port
    host = String(place.first == "[" ? place.dropFirst().dropLast() : place)
    guard !host.isEmpty else { return nil }
  }

  /// The port as a firewall names it.
  var portName: String { "\(transport == .udp ? "UDP" : "TCP") \(port)" }
}

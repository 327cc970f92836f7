/// Which web pages may open a WebSocket. A page's browser always sends `Origin`; a client that sends none is no browser and has no user's cookies to abuse.
package enum OriginPolicy: Sendable {
  /// Pages of the host that the request names, and of the given origins (`https://app.example`).
  case sameHost(also: [String])
  case any

  func allows(origin: String?, host: String?) -> Bool {
    switch self {
    case .any: return true
    case .sameHost(let others):
      guard let origin = origin?.lowercased() else { return true }
      if others.contains(where: { $0.lowercased() == origin }) { return true }
      guard let separator = origin.firstRange(of: "://"), let host else { return false }
      let scheme = origin[..<separator.lowerBound]
      let defaultPort = scheme == "https" ? ":443" : scheme == "http" ? ":80" : nil
      // A proxy in front may have taken off the TLS, so only the authorities are compared.
      func normalized(_ authority: Substring) -> Substring {
        defaultPort.map { authority.hasSuffix($0) ? authority.dropLast($0.count) : authority } ?? authority
      }
      return normalized(origin[separator.upperBound...]) == normalized(Substring(host.lowercased()))
    }
  }
}

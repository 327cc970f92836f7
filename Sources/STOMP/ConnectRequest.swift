/// The contents of a CONNECT, with its version and heart-beat parsed. It contains secrets and has no description.
package struct ConnectRequest: Sendable {
  /// The version that CONNECTED will name.
  package let version: Version
  package let heartBeat: HeartBeat
  package let headers: Headers

  package var login: String? { headers["login"] }
  package var device: String? { headers["device"] }

  /// The token: `passcode`, or `Authorization: Bearer`.
  package var token: String? {
    if let passcode = headers["passcode"], !passcode.isEmpty { return passcode }
    guard let authorization = headers["authorization"] ?? headers["Authorization"] else { return nil }
    let parts = authorization.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return String(parts[1].trimmingBlanks)
  }

  init(version: Version, heartBeat: HeartBeat, headers: Headers) {
    self.version = version
    self.heartBeat = heartBeat
    self.headers = headers
  }
}

extension ConnectRequest: CustomStringConvertible, CustomReflectable {
  package var description: String { "CONNECT \(version.rawValue)" }
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The contents of CONNECTED.
package struct Welcome: Sendable {
  package var session: String
  package var server: String
  package var user: String
  package var device: String
  /// When the token expires, on the session's clock; nil for never.
  package var expiresAt: UInt64?

  package init(session: String, server: String, user: String, device: String, expiresAt: UInt64?) {
    self.session = session
    self.server = server
    self.user = user
    self.device = device
    self.expiresAt = expiresAt
  }
}

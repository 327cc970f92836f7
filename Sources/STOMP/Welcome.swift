/// The contents of CONNECTED.
package struct Welcome: Sendable {
  package var session: String
  package var server: String
  package var user: String
  package var device: String
  /// When the token ends, on the session's clock; nil is never.
  package var expiresAt: UInt64?

  package init(session: String, server: String, user: String, device: String, expiresAt: UInt64?) {
    self.session = session
    self.server = server
    self.user = user
    self.device = device
    self.expiresAt = expiresAt
  }
}

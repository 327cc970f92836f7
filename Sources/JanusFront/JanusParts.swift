package import JanusAPI

/// Carries out commands: the owner of the rooms.
package protocol JanusSink: Sendable {
  /// Callable from any thread; must not block. The commands of one connection are carried out in their order.
  func submit(_ command: JanusCommand)
}

/// The secrets in a request, as texts of its sender.
package struct JanusSecrets: Sendable, Hashable {
  package var apiSecret: String?
  /// The request's, and the one in the body of a message.
  package var token: String?
  package var bodyToken: String?

  package init(apiSecret: String?, token: String?, bodyToken: String?) {
    self.apiSecret = apiSecret
    self.token = token
    self.bodyToken = bodyToken
  }
}

/// Judges secrets.
package protocol JanusJudge: Sendable {
  func grant(for secrets: JanusSecrets) async -> Grant
}

/// Finds out whose token it is.
package protocol Authenticator: Sendable {
  /// The token's claims; nil when it is not valid, for whatever reason. Called for each CONNECT, and abandoned when the time to CONNECT is over.
  func claims(of token: String) async -> Claims?
}

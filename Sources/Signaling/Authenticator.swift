/// Finds out whose token it is.
package protocol Authenticator: Sendable {
  /// What the token says; nil when it is not valid, for whatever reason. Called for each CONNECT, and given up after the time to CONNECT.
  func claims(of token: String) async -> Claims?
}

package import MediaModel

/// Determines whose token it is.
package protocol Authenticator: Sendable {
  /// The token's claims; nil if it is not valid, for whatever reason. Called for each login, and abandoned when the time to log in is over.
  func claims(of token: String) async -> Claims?
}

/// A valid token's claims (protocol section 2).
package struct Claims: Sendable {
  package var user: UserID
  /// The display name.
  package var name: String?
  package var device: DeviceID?
  /// Scope `service`: the app's back end.
  package var isService: Bool
  /// The roles that `presence/set` may choose (protocol section 7).
  package var roles: [String]
  /// The one call of a guest; nil for everybody else.
  package var guestOf: CallID?
  package var expiresAt: Timestamp

  package init(
    user: UserID, name: String?, device: DeviceID?, isService: Bool, roles: [String] = [], guestOf: CallID? = nil,
    expiresAt: Timestamp
  ) {
    self.user = user
    self.name = name
    self.device = device
    self.isService = isService
    self.roles = roles
    self.guestOf = guestOf
    self.expiresAt = expiresAt
  }
}

package import MediaModel

/// A valid token's claims (protocol section 2).
package struct Claims: Sendable {
  package var user: UserID
  /// The display name.
  package var name: String?
  package var device: DeviceID?
  /// Scope `service`: an app's back end.
  package var isService: Bool
  /// Those that `presence/set` may pick (protocol section 7).
  package var roles: [String]
  package var expiresAt: Timestamp

  package init(
    user: UserID, name: String?, device: DeviceID?, isService: Bool, roles: [String] = [], expiresAt: Timestamp
  ) {
    self.user = user
    self.name = name
    self.device = device
    self.isService = isService
    self.roles = roles
    self.expiresAt = expiresAt
  }
}

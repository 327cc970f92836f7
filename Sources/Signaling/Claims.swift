package import MediaModel

/// A valid token's claims (protocol section 2).
package struct Claims: Sendable {
  package var user: UserID
  /// The display name.
  package var name: String?
  package var device: DeviceID?
  /// Scope `service`: an app's back end.
  package var isService: Bool
  package var expiresAt: Timestamp

  package init(user: UserID, name: String?, device: DeviceID?, isService: Bool, expiresAt: Timestamp) {
    self.user = user
    self.name = name
    self.device = device
    self.isService = isService
    self.expiresAt = expiresAt
  }
}

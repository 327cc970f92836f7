package import MediaModel

/// The client on a connection, as identified by its token.
package struct Identity: Hashable, Codable, Sendable {
  package var device: Device
  /// The display name; personal.
  package var name: String?
  /// The app's back end, which is not a device of a call.
  package var isService: Bool
  /// False if the server had to make up the device's name.
  package var canRegister: Bool
  /// The token's claim `roles` (protocol section 7).
  package var roles: [String]
  /// The one call of a guest; nil for everybody else.
  package var guestOf: CallID?

  package init(
    device: Device, name: String?, isService: Bool = false, canRegister: Bool = true, roles: [String] = [],
    guestOf: CallID? = nil
  ) {
    self.device = device
    self.name = name
    self.isService = isService
    self.canRegister = canRegister
    self.roles = roles
    self.guestOf = guestOf
  }
}

/// One STOMP connection, for as long as it lasts. The signaling server never reuses a number.
package struct SessionID: CountedID {
  package var rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}

import Calls
package import MediaModel
import STOMP

/// Determines whose token it is.
package protocol Authenticator: Sendable {
  /// The token's claims; nil if it is not valid, for whatever reason. Called for each CONNECT, and abandoned when the time to CONNECT is over.
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

extension Identity {
  /// The token's user, on the device named by the token, else by the CONNECT, else made up for this connection. nil if
  /// `login` is somebody else's or the device's id is invalid (protocol section 2).
  init?(_ claims: Claims, asking request: ConnectRequest, madeUp: @autoclosure () -> DeviceID) {
    let device: DeviceID
    let isNamed: Bool
    if let named = claims.device {
      (device, isNamed) = (named, true)
    } else if let text = request.device {
      guard let named = DeviceID(text) else { return nil }
      (device, isNamed) = (named, true)
    } else {
      (device, isNamed) = (madeUp(), false)
    }
    // Some client libraries always send the header, empty if the app gave none.
    if let login = request.login, !login.isEmpty, login != claims.user.text, login != "device-\(device.text)" {
      return nil
    }
    self.init(
      device: Device(user: claims.user, device: device), name: claims.name, isService: claims.isService,
      canRegister: isNamed && !claims.isService, roles: claims.roles, guestOf: claims.guestOf)
  }
}

import Calls
import MediaModel
import STOMP

extension Identity {
  /// The token's user, on the device that the token names, else the CONNECT, else one made for this connection.
  /// nil when `login` is somebody else's or the device's id is bad (protocol section 2).
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
    // Some client libraries always send the header, empty where the app gave none.
    if let login = request.login, !login.isEmpty, login != claims.user.text, login != "device-\(device.text)" {
      return nil
    }
    self.init(
      device: Device(user: claims.user, device: device), name: claims.name, isService: claims.isService,
      canRegister: isNamed && !claims.isService, roles: claims.roles)
  }
}

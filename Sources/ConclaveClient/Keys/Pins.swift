package import MediaModel

/// The fingerprints under which devices were first seen, and which of them a person has compared.
package struct Pins: Sendable {
  package struct Pin: Sendable, Hashable {
    package var fingerprint: [UInt8]
    package var isVerified: Bool
  }

  private var pins: [Device: Pin] = [:]
  private var users: Set<UserID> = []

  package init(_ devices: [PinnedDevice] = []) { for device in devices { add(device) } }

  package subscript(device: Device) -> Pin? { pins[device] }

  /// Whether any device of the user was seen before: then another one is news.
  func knows(_ user: UserID) -> Bool { users.contains(user) }

  package mutating func pin(_ device: Device, _ fingerprint: [UInt8], isVerified: Bool = false) {
    pins[device] = Pin(fingerprint: fingerprint, isVerified: isVerified)
    users.insert(device.user)
  }

  /// False when it names no device of the protocol.
  @discardableResult
  package mutating func add(_ device: PinnedDevice) -> Bool {
    guard let user = UserID(device.user), let id = DeviceID(device.device), device.fingerprint.count == 32 else {
      return false
    }
    pin(Device(user: user, device: id), device.fingerprint, isVerified: device.isVerified)
    return true
  }

  /// As the app keeps them; in no order.
  var devices: [PinnedDevice] { pins.map { PinnedDevice($0.key, $0.value) } }
}

/// A device and the fingerprint under which it was first seen.
public struct PinnedDevice: Sendable, Hashable {
  /// The user whose device it is.
  public var user: String
  /// The device's id.
  public var device: String
  /// The hash over its public keys, 32 bytes.
  public var fingerprint: [UInt8]
  /// Whether a person has compared or accepted it; what `KeyTrust.verifiedOnly` asks for.
  public var isVerified: Bool

  /// A pin that the app kept.
  public init(user: String, device: String, fingerprint: [UInt8], isVerified: Bool = false) {
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
    self.isVerified = isVerified
  }

  init(_ device: Device, _ pin: Pins.Pin) {
    self.init(
      user: device.user.text, device: device.device.text, fingerprint: pin.fingerprint, isVerified: pin.isVerified)
  }
}

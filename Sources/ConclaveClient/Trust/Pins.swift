package import MediaModel

/// Knowledge about other devices: the fingerprints under which they were first seen, which of them a person has compared, and the statements that devices
/// of one user signed about each other.
package struct Pins: Sendable {
  package struct Pin: Sendable, Hashable {
    package var fingerprint: [UInt8]
    package var isVerified: Bool
    /// nil until the device's public keys are known.
    var signKey: SignKey?
  }

  private var pins: [Device: Pin] = [:]
  private var devices: [UserID: Set<DeviceID>] = [:]
  private var statements: [UserID: Statements] = [:]
  /// Rises when the standing of a known device changes; not for new devices.
  private(set) var revision = 0

  package init(_ devices: [PinnedDevice] = [], statements: [TrustStatement] = []) {
    for device in devices { add(device) }
    for statement in statements { learn(statement) }
  }

  package subscript(device: Device) -> Pin? { pins[device] }

  /// Whether any device of the user was seen before: another one is then news.
  func knows(_ user: UserID) -> Bool { devices[user] != nil }

  package func level(of device: Device, _ fingerprint: [UInt8]) -> TrustLevel {
    guard let pin = pins[device], pin.fingerprint == fingerprint else { return .new }
    guard !isRevoked(device.user, fingerprint) else { return .known }
    if pin.isVerified { return .verified }
    return statements[device.user]?.vouched.contains(fingerprint) == true ? .vouched : .known
  }

  /// A verified device of the user, or the device itself, declared that it must not be trusted. That is permanent.
  package func isRevoked(_ user: UserID, _ fingerprint: [UInt8]) -> Bool {
    statements[user]?.revoked.contains(fingerprint) ?? false
  }

  package mutating func pin(_ device: Device, _ fingerprint: [UInt8], isVerified: Bool = false) {
    let old = pins[device]
    if let old, old.fingerprint != fingerprint || old.isVerified != isVerified { revision += 1 }
    pins[device] = Pin(
      fingerprint: fingerprint, isVerified: isVerified, signKey: old?.fingerprint == fingerprint ? old?.signKey : nil)
    devices[device.user, default: []].insert(device.device)
    judge(device.user)
  }

  /// Remembers the sign key of a pinned device; false if it contains nothing new.
  mutating func remember(_ keys: DeviceKeys) -> Bool {
    guard let pin = pins[keys.address], pin.fingerprint == keys.fingerprint, pin.signKey == nil else { return false }
    pins[keys.address]?.signKey = SignKey(keys)
    judge(keys.address.user)
    return true
  }

  /// False if it does not name a device of the protocol.
  @discardableResult
  package mutating func add(_ device: PinnedDevice) -> Bool {
    guard let user = UserID(device.user), let id = DeviceID(device.device), device.fingerprint.count == 32 else {
      return false
    }
    let address = Device(user: user, device: id)
    pin(address, device.fingerprint, isVerified: device.isVerified)
    if let algorithm = device.signAlgorithm, let key = device.signKey {
      pins[address]?.signKey = SignKey(algorithm: algorithm, publicKey: key)
      judge(user)
    }
    return true
  }

  /// As the app stores them; in no particular order.
  var pinned: [PinnedDevice] { pins.map { PinnedDevice($0.key, $0.value) } }

  /// A pin as the app stores it.
  func pinned(_ device: Device) -> PinnedDevice? { pins[device].map { PinnedDevice(device, $0) } }

  // MARK: vouches and revocations

  /// The statements that devices of one user signed, and their consequences.
  private struct Statements {
    var vouches: [TrustStatement] = []
    var revokes: [TrustStatement] = []
    var vouched: Set<[UInt8]> = []
    var revoked: Set<[UInt8]> = []
    /// Vouched devices that spoke against a verified one.
    var disputed: Set<TrustStatement> = []
  }

  private static let maximumVouches = 8 * 32
  private static let maximumRevokes = 64

  /// Stores a statement, valid or not: its signer may be verified later. False if it is already known, or there is no room.
  @discardableResult
  mutating func learn(_ statement: TrustStatement) -> Bool {
    guard let user = UserID(statement.user), statement.fingerprint.count == 32,
      statement.signerFingerprint.count == 32,
      statement.fingerprint != statement.signerFingerprint
        || statement.kind == .revoke
    else { return false }
    var known = statements[user] ?? Statements()
    switch statement.kind {
    case .vouch:
      known.vouches.removeAll {
        $0.fingerprint == statement.fingerprint && $0.signerFingerprint == statement.signerFingerprint
          && $0.at < statement.at
      }
      guard !known.vouches.contains(statement), known.vouches.count < Self.maximumVouches else { return false }
      known.vouches.append(statement)
    case .revoke:
      guard !known.revokes.contains(statement), known.revokes.count < Self.maximumRevokes else { return false }
      known.revokes.append(statement)
    }
    statements[user] = known
    judge(user)
    return true
  }

  /// Statements by which a vouched device speaks against a verified one: they change nothing, but people should know.
  func disputes(of user: UserID) -> Set<TrustStatement> { statements[user]?.disputed ?? [] }

  /// Determines which devices the user's verified devices vouch for or revoke. A revocation that counted once counts
  /// permanently.
  private mutating func judge(_ user: UserID) {
    guard var known = statements[user] else { return }
    let own = (devices[user] ?? []).compactMap { device in
      pins[Device(user: user, device: device)].map { (device, $0) }
    }
    func signer(_ statement: TrustStatement) -> Pin? {
      let pin = own.first { $0.0.text == statement.signer && $0.1.fingerprint == statement.signerFingerprint }?.1
      guard let pin, let key = pin.signKey, statement.isSigned(by: key) else { return nil }
      return pin
    }
    for revoke in known.revokes where !known.revoked.contains(revoke.fingerprint) {
      guard let pin = signer(revoke), !known.revoked.contains(pin.fingerprint) else { continue }
      if pin.isVerified || pin.fingerprint == revoke.fingerprint { known.revoked.insert(revoke.fingerprint) }
    }
    known.vouched = []
    for vouch in known.vouches where !known.revoked.contains(vouch.fingerprint) {
      guard !known.revoked.contains(vouch.signerFingerprint), let pin = signer(vouch), pin.isVerified else { continue }
      known.vouched.insert(vouch.fingerprint)
    }
    known.disputed = Set(
      known.revokes.filter { revoke in
        known.vouched.contains(revoke.signerFingerprint) && signer(revoke) != nil
          && own.contains { $0.1.isVerified && $0.1.fingerprint == revoke.fingerprint }
      })
    if let before = statements[user], before.revoked != known.revoked || before.vouched != known.vouched {
      revision += 1
    }
    statements[user] = known
  }
}

/// A device and the fingerprint under which it was first seen.
public struct PinnedDevice: Sendable, Hashable, Codable {
  /// The user whose device it is.
  public var user: String
  /// The device's id.
  public var device: String
  /// The hash over its public keys, 32 bytes.
  public var fingerprint: [UInt8]
  /// Whether a person has compared it, as required by `KeyTrust.verifiedOnly`.
  public var isVerified: Bool
  /// The algorithm with which the device signs, and its public key (SPKI): they prove what it signed about its user's other
  /// devices.
  public var signAlgorithm: String?
  /// See `signAlgorithm`.
  public var signKey: [UInt8]?

  /// A pin that the app stored.
  public init(
    user: String, device: String, fingerprint: [UInt8], isVerified: Bool = false, signAlgorithm: String? = nil,
    signKey: [UInt8]? = nil
  ) {
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
    self.isVerified = isVerified
    self.signAlgorithm = signAlgorithm
    self.signKey = signKey
  }

  init(_ device: Device, _ pin: Pins.Pin) {
    self.init(
      user: device.user.text, device: device.device.text, fingerprint: pin.fingerprint, isVerified: pin.isVerified,
      signAlgorithm: pin.signKey?.algorithm, signKey: pin.signKey?.publicKey)
  }
}

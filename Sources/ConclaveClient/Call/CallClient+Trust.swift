import Contract
import MediaModel

/// Devices and their keys: pins, problems and trust.
extension CallClient {
  /// Everything pinned, for an app that stores it as a whole.
  public var pinnedDevices: [PinnedDevice] { pins.pinned }

  /// Accepts this device with this fingerprint as its user's: a person accepts a changed key, or has compared it (`isVerified`). A key that was compared
  /// before stays verified. Running calls apply this immediately.
  public func trust(_ device: PinnedDevice) {
    guard let user = UserID(device.user), let id = DeviceID(device.device) else { return }
    let address = Device(user: user, device: id)
    var device = device
    device.isVerified = device.isVerified || pins.level(of: address, device.fingerprint) == .verified
    guard pins.add(device) else { return }
    if let keys = directory[Base64Bytes(device.fingerprint)] { _ = pins.remember(keys) }
    if let pin = pins.pinned(address) { tell(.pinned(pin)) }
    for call in calls.keys { feed(.trusted(address), to: call) }
  }

  func sendAnyway(_ shown: [ListedDevice], in id: CallID) { feed(.sendAnyway(shown), to: id) }

  /// Takes over the contents of `devices/list`: public keys, which prove themselves, and what devices signed about each
  /// other.
  func learn(_ devices: Devices) {
    for keys in directory.learn(devices.devices) where pins.remember(keys) {
      if let pin = pins.pinned(keys.address) { tell(.pinned(pin)) }
    }
    let vouches = devices.devices.flatMap { device in device.vouches.map { TrustStatement($0, user: device.user) } }
    for statement in vouches + devices.revokes.map(TrustStatement.init) { note(statement) }
  }

  /// Statements dated more than a day in the future are ignored.
  func note(_ statement: TrustStatement) {
    guard statement.at <= Self.clock.milliseconds + 86_400_000, pins.learn(statement) else { return }
    tell(.statement(statement))
    guard let user = UserID(statement.user) else { return }
    for dispute in pins.disputes(of: user) where dispute == statement {
      tell(
        .keyWarning(KeyWarning(.disputed, user: dispute.user, device: dispute.device, fingerprint: dispute.fingerprint))
      )
    }
    for call in calls.keys { feed(.trustChanged, to: call) }
  }

  /// Effects that do not belong to one call.
  func note(_ effect: KeyEffect) {
    switch effect {
    case .pin(let device, let fingerprint):
      pins.pin(device, fingerprint)
      tell(
        .pinned(PinnedDevice(user: device.user.text, device: device.device.text, fingerprint: fingerprint)))
    case .warn(let warning): tell(.keyWarning(warning))
    default: break
    }
  }

  /// Learns a ring's devices before it is answered. If already as many rings are being looked up as are kept, a further one is looked up when it
  /// is answered.
  func lookUp(_ ring: Ring) {
    guard ringLookUps < Self.maximumRings else { return }
    ringLookUps += 1
    Task {
      await learnDevices(of: ring)
      ringLookUps -= 1
    }
  }

  /// Public keys of the devices that a ring names, for its envelope.
  func learnDevices(of ring: Ring) async {
    guard let caller = ring.envelope?.from, let entry = ring.list?.first(where: { $0.address == caller }),
      !directory.contains(entry.fingerprint)
    else { return }
    let users = Array(Set((ring.list ?? []).map(\.user))).sorted()
    if let reply = try? await requestAgain(.people(.listDevices(ListDevices(users: users))), reply: Devices.self) {
      learn(reply)
    }
  }

  /// A member's devices or keys have changed, and a person should know before those are in the call. There is one request at a time. A member
  /// beyond `examinationLimit` is examined when the list of keys names its device.
  func examineDevices(of user: UserID, _ id: CallID) {
    guard let call = calls[id] else { return }
    switch call.examination {
    case .none:
      call.examination = .running(waiting: [user])
      Task { await examineDevices(of: id) }
    case .running(var waiting):
      guard waiting.count < Self.examinationLimit else { return }
      // So that no copy of the set remains.
      call.examination = .none
      waiting.insert(user)
      call.examination = .running(waiting: waiting)
    }
  }

  private func examineDevices(of id: CallID) async {
    guard let call = calls[id] else { return }
    defer { call.examination = .none }
    while calls[id] === call, let user = call.takeUnexamined() {
      guard let reply = try? await requestAgain(.people(.listDevices(ListDevices(users: [user]))), reply: Devices.self)
      else {
        continue
      }
      learn(reply)
      for device in reply.devices.compactMap(DeviceKeys.init) where device.address != identity.address {
        let pin = pins[device.address]
        guard pin?.fingerprint != device.fingerprint, pin != nil || pins.knows(user) else { continue }
        let warning = KeyWarning(
          pin == nil ? .newDevice : .changedKey,
          ListEntry(
            user: device.address.user, device: device.address.device, participant: 0, joinId: nil, joinKey: nil,
            fingerprint: Base64Bytes(device.fingerprint)))
        if call.keys.isNews(warning) { tell(warning, in: call) }
      }
    }
  }
}

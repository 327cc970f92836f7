import Contract
import MediaModel

/// Devices and their keys: what is pinned, what is wrong with them, and who is trusted.
extension CallClient {
  /// Everything pinned, for an app that stores it as a whole.
  public var pinnedDevices: [PinnedDevice] { pins.devices }

  /// Takes this device with this fingerprint for its user's: a person has compared it, or accepts a changed key. Calls that go on heed it at once.
  public func trust(_ device: PinnedDevice) {
    guard pins.add(device), let user = UserID(device.user), let id = DeviceID(device.device) else { return }
    eventSink.yield(.pinned(device))
    for call in calls.keys { feed(.trusted(Device(user: user, device: id)), to: call) }
  }

  /// Effects that are not of one call.
  func note(_ effect: KeyEffect) {
    switch effect {
    case .pin(let device, let fingerprint):
      pins.pin(device, fingerprint)
      eventSink.yield(
        .pinned(PinnedDevice(user: device.user.text, device: device.device.text, fingerprint: fingerprint)))
    case .warn(let warning): eventSink.yield(.keyWarning(warning))
    default: break
    }
  }

  /// Public keys of the devices that a ring names, for its envelope.
  func learnDevices(of ring: Ring) async {
    guard let caller = ring.envelope?.from, let entry = ring.list?.first(where: { $0.address == caller }),
      directory[entry.fingerprint] == nil
    else { return }
    let users = Array(Set((ring.list ?? []).map(\.user))).sorted()
    if let reply = try? await requestAgain(.listDevices(ListDevices(users: users)), reply: Devices.self) {
      directory.learn(reply.devices)
    }
  }

  /// A member's devices or keys have changed: a person should know before they are in the call.
  func examineDevices(of user: UserID, _ id: CallID) {
    Task {
      guard let reply = try? await requestAgain(.listDevices(ListDevices(users: [user])), reply: Devices.self) else {
        return
      }
      directory.learn(reply.devices)
      for device in reply.devices.compactMap(DeviceKeys.init) where device.address != identity.address {
        let pin = pins[device.address]
        guard pin?.fingerprint != device.fingerprint, pin != nil || pins.knows(user) else { continue }
        let warning = KeyWarning(
          pin == nil ? .newDevice : .changedKey,
          ListEntry(
            user: device.address.user, device: device.address.device, participant: 0, joinId: nil, joinKey: nil,
            fingerprint: Base64Bytes(device.fingerprint)))
        if calls[id]?.keys.isNews(warning) == true { calls[id]?.updates.yield(.keyWarning(warning)) }
      }
    }
  }
}

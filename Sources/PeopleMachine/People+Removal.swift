import CallMessages
import Contract
import MediaModel

/// `devices/remove`: a device loses its place in calls, its keys, its events and its connection (protocol section 5). `conclave forget`: deletes everything
/// about the user, here and on the disk.
extension People {
  /// Checks the removal. A signed `revoke` in the request counts like a `devices/revoke`.
  mutating func checkRemoval(_ request: RemoveDevice, by asker: Device) throws(RequestError) -> Response {
    let device = Device(user: asker.user, device: request.device)
    guard directory[device] != nil else {
      throw RequestError(.deviceNotFound, "this user has no such device", field: "device")
    }
    var done = Response(.nothing)
    if let signed = request.revoke {
      let statement = DeviceStatement(
        device: request.device, fingerprint: signed.fingerprint, at: signed.at, sigAlg: signed.sigAlg,
        signature: signed.signature)
      done = try revoke(statement, by: asker)
      // The removal of keys is announced anyway.
      if directory[device]?.entry != nil { done.devicesChanged = nil }
    }
    done.removed = device
    return done
  }

  /// A device that is gone vouches for nothing.
  mutating func dropVouches(by device: Device) {
    for entry in directory.entries(of: device.user) where entry.vouches.contains(where: { $0.by == device.device }) {
      let other = Device(user: entry.user, device: entry.device)
      directory[other]?.entry?.vouches.removeAll { $0.by == device.device }
      journal.devices.insert(other)
    }
  }

  func isLeaving(_ device: Device) -> Bool {
    !leaving.isEmpty && (leaving[.device(device)] != nil || leaving[.user(device.user)] != nil)
  }

  func isLeaving(_ user: UserID) -> Bool { leaving[.user(user)] != nil }

  /// Removes the leaver from all calls. Once the last call has confirmed that, and the leaver was told what happened in them, everything else of it is
  /// deleted. Until then it makes no requests.
  mutating func dismiss(_ leaver: Leaver) {
    guard leaving[leaver] == nil else { return }
    let user = leaver.user
    let calls = calls(of: user)
    leaving[leaver] = Set(calls)
    var isUser = false
    if case .user = leaver { isUser = true }
    let hadDevices = !directory.devices(of: user).isEmpty
    for call in calls {
      send(.remove(leaver, from: call))
      if isUser, hadDevices { send(.devicesChanged(user, in: call)) }
    }
    if isUser { send(.forget(user)) }
    if calls.isEmpty { finish(leaver) }
  }

  mutating func confirmRemoval(of leaver: Leaver, from call: CallID) {
    if case .user(let user) = leaver { end(call, for: user) }
    guard leaving[leaver]?.remove(call) != nil, leaving[leaver]?.isEmpty == true else { return }
    finish(leaver)
  }

  private mutating func finish(_ leaver: Leaver) {
    leaving[leaver] = nil
    switch leaver {
    case .device(let device): remove(device)
    case .user(let user): forget(user)
    }
  }

  private mutating func remove(_ device: Device) {
    let hadKeys = directory[device]?.entry != nil
    if let session = directory[device]?.connection?.session {
      drop(session)
      _ = directory.disconnect(session)
      notePresence(of: device.user)
      out.effects.append(.client(.close(session, reason: "this device was removed")))
    }
    forget(device)
    dropVouches(by: device)
    if hadKeys { tellOfDevices(of: device.user) }
  }

  /// The user is not a member of any call, and has no devices. Connected devices are unknown when they connect again.
  private mutating func forget(_ user: UserID) {
    for device in directory.devices(of: user) {
      if let session = directory[device]?.connection?.session {
        let reason = user.isGuest ? "this guest's call is over" : "this user's data was deleted"
        out.effects.append(.client(.close(session, reason: reason)))
        drop(session)
        _ = directory.disconnect(session)
      }
      forget(device)
      away.remove(device)
    }
    directory.forgetRevokes(of: user)
    presence.forget(user)
    presence.touch(user)
    memberships[user] = nil
    alerts.forget(user)
    journal.forgotten.append(user)
  }
}

import Contract
import MediaModel

/// `devices/remove`: a device loses its place in calls, its keys, its events and its connection (protocol section 5).
extension Calls {
  func checkRemoval(_ request: RemoveDevice, by user: UserID) throws(RequestError) -> Outcome {
    let device = Device(user: user, device: request.device)
    guard directory[device] != nil else {
      throw RequestError(.deviceNotFound, "this user has no such device", field: "device")
    }
    var outcome = Outcome(NoBody())
    outcome.removed = device
    return outcome
  }

  /// After the reply, which may go to the same device.
  mutating func remove(_ device: Device) {
    for id in memberships[device.user] ?? [] {
      var out = Outputs()
      calls[id]?.remove(device, now: now, out: &out)
      carryOut(out, of: id)
    }
    let hadKeys = directory[device]?.entry != nil
    if let session = directory[device]?.connection?.session {
      drop(session)
      _ = directory.disconnect(session)
      notePresence(of: device.user)
      effects.append(.close(session, reason: "this device was removed"))
      if !directory.isConnected(device.user) {
        presence.depart(device.user, now: now)
        presence.touch(device.user)
      }
    }
    forget(device)
    if hadKeys { tellOfDevices(of: device.user) }
  }
}

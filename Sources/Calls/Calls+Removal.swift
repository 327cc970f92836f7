import Contract
import MediaModel

/// `devices/remove`: a device loses its place in calls, its keys, its events and its connection (protocol section 5).
extension Calls {
  /// Checks the removal. A signed `revoke` in the request counts like a `devices/revoke`.
  mutating func checkRemoval(_ request: RemoveDevice, by asker: Device) throws(RequestError) -> Outcome {
    let device = Device(user: asker.user, device: request.device)
    guard directory[device] != nil else {
      throw RequestError(.deviceNotFound, "this user has no such device", field: "device")
    }
    var outcome = Outcome(NoBody())
    if let signed = request.revoke {
      let statement = DeviceStatement(
        device: request.device, fingerprint: signed.fingerprint, at: signed.at, sigAlg: signed.sigAlg,
        signature: signed.signature)
      outcome = try revoke(statement, by: asker)
      // The removal of keys is told anyway.
      if directory[device]?.entry != nil { outcome.devicesChanged = nil }
    }
    outcome.removed = device
    return outcome
  }

  /// A device that is gone vouches for nothing.
  mutating func dropVouches(by device: Device) {
    for entry in directory.entries(of: device.user) where entry.vouches.contains(where: { $0.by == device.device }) {
      let other = Device(user: entry.user, device: entry.device)
      directory[other]?.entry?.vouches.removeAll { $0.by == device.device }
      journal.devices.insert(other)
    }
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
    dropVouches(by: device)
    if hadKeys { tellOfDevices(of: device.user) }
  }
}

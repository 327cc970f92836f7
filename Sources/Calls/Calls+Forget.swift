import Contract
import MediaModel

/// `conclave forget`: nothing is kept of the user. What the disk holds is the shell's to delete.
extension Calls {
  mutating func forget(_ user: UserID) {
    for id in memberships[user] ?? [] {
      var out = Outputs()
      calls[id]?.dismiss(user, now: now, out: &out)
      carryOut(out, of: id)
    }
    let devices = directory.devices(of: user)
    for device in devices {
      if let session = directory[device]?.connection?.session {
        effects.append(.close(session, reason: "this user's data was deleted"))
        drop(session)
        _ = directory.disconnect(session)
      }
      directory.forget(device)
      away.remove(device)
    }
    presence.forget(user)
    presence.touch(user)
    ended.forget(user)
    if !devices.isEmpty { tellOfDevices(of: user) }
  }
}

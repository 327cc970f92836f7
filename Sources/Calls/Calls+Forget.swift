import Contract
import MediaModel

/// `conclave forget`: nothing is kept of the user, here or on the disk.
extension Calls {
  /// The user leaves its calls, is a member of none, and has no devices. Those that are connected are strangers when they come again.
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
      forget(device)
      away.remove(device)
    }
    directory.forgetRevokes(of: user)
    presence.forget(user)
    presence.touch(user)
    ended.forget(user)
    if !devices.isEmpty { tellOfDevices(of: user) }
    for id in memberships[user] ?? [] {
      calls[id]?.forget(user)
      journal.changes.append(.memberGone(id, user))
    }
    memberships[user] = nil
    journal.forgotten.append(user)
  }
}

extension Call {
  fileprivate mutating func forget(_ user: UserID) {
    removeMember(user)
    journal.members[user] = nil
    journal.parts[user] = nil
    journal.staying.remove(user)
    journal.touched.remove(user)
    guard firstReply?.results?[user] != nil || firstReply?.call.members.contains(where: { $0.user == user }) == true
    else { return }
    firstReply?.results?[user] = nil
    firstReply?.call.members.removeAll { $0.user == user }
    journal.isStored = false
  }
}

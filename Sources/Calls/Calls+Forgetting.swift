import Contract
import MediaModel

/// `conclave forget`: all that is kept of a user goes.
extension Calls {
  /// The user leaves its calls, is a member of none, and has no devices. Those of its devices that are connected are closed, and are strangers when they come again.
  mutating func forget(_ user: UserID) {
    for id in memberships[user] ?? [] {
      var out = Outputs()
      calls[id]?.dismiss(user, now: now, out: &out)
      carryOut(out, of: id)
      calls[id]?.forget(user)
      journal.changes.append(.memberGone(id, user))
    }
    memberships[user] = nil
    for device in directory.devices(of: user) {
      if let session = directory[device]?.connection?.session {
        effects.append(.close(session, reason: "this user was forgotten"))
        _ = directory.disconnect(session)
      }
      away.remove(device)
      forget(device)
    }
    ended.forget(user)
    journal.forgotten.append(user)
  }
}

extension Call {
  /// Ends the user's ring or stay.
  fileprivate mutating func dismiss(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard let member = member(user) else { return }
    if member.isRinging {
      cancelRings(of: [user], by: nil, out: &out)
      settle(now: now, out: &out)
      return
    }
    // A transfer ends with its last.
    while let participant = self.member(user)?.participants.last { go(participant.device, .left, now: now, out: &out) }
  }

  fileprivate mutating func forget(_ user: UserID) {
    removeMember(user)
    journal.members[user] = nil
    journal.parts[user] = nil
    journal.touched.remove(user)
    guard firstReply?.results?[user] != nil || firstReply?.call.members.contains(where: { $0.user == user }) == true
    else { return }
    firstReply?.results?[user] = nil
    firstReply?.call.members.removeAll { $0.user == user }
    journal.isStored = false
  }
}

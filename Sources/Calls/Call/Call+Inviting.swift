import Contract
import MediaModel

/// Links: invitations for anyone who holds them (protocol section 4).
extension Call {
  /// Checks that the user may invite: a joined member, and under `policy.invite` `initiator` the initiator only (rule 5).
  func checkMayInvite(_ user: UserID) throws(RequestError) {
    guard member(user)?.isJoined == true else {
      throw RequestError(.callNotJoined, "only who has joined the call may add people")
    }
    guard rules.invite == .members || user == initiator else {
      throw RequestError(.callInviteNotAllowed, "only the initiator of this call may add people")
    }
  }

  /// Makes a link that is valid for `seconds`. `key` is for the call's first, and for the first after a `revoke`.
  mutating func makeLink(
    _ seconds: Int?, by user: UserID, key: () -> [UInt8], hashing: Hashing, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> CallLink {
    try checkMayInvite(user)
    let seconds = seconds ?? CallLinks.defaultLifetime
    guard CallLinks.lifetimes.contains(seconds) else {
      throw RequestError(.requestInvalid, "a link is valid for 60 to 86,400 seconds", field: "expiresIn")
    }
    var links = self.links ?? CallLinks(key: key(), now: now)
    let link = links.make(for: id, until: now + .seconds(seconds), hashing: hashing)
    self.links = links
    settle(now: now, out: &out)
    return link
  }

  /// Makes all links void.
  mutating func revokeLinks(by user: UserID, now: Timestamp, out: inout Outputs) throws(RequestError) {
    try checkMayInvite(user)
    links = nil
    settle(now: now, out: &out)
  }

  /// Non-members and cancelled members need a link; all others need none.
  func needsLink(_ user: UserID) -> Bool {
    guard let member = member(user) else { return true }
    if case .cancelled = member.phase { return true }
    return false
  }
}

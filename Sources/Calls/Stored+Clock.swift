import MediaModel

/// The clock may have been set back since the last run: what lies ahead counts from now, so that no ring, rotation or time away lasts longer than
/// from the new start on.
extension Stored.Call {
  func bounded(by now: Timestamp, _ rules: CallRules) -> Stored.Call {
    var bounded = self
    bounded.progress.activeSince = progress.activeSince.map { min($0, now) }
    bounded.progress.aloneSince = progress.aloneSince.map { min($0, now) }
    bounded.progress.rotateAt = progress.rotateAt.map { min($0, now + rules.rotationTime) }
    for place in members.indices { bounded.members[place].bound(by: now, rules) }
    return bounded
  }
}

extension StoredMember {
  fileprivate mutating func bound(by now: Timestamp, _ rules: CallRules) {
    if let expiresAt = ringing?.expiresAt { ringing?.expiresAt = min(expiresAt, now + rules.ringTime) }
    disconnectedAt = disconnectedAt.map { min($0, now) }
    for place in participants.indices { participants[place].bound(by: now) }
  }
}

extension StoredParticipant {
  fileprivate mutating func bound(by now: Timestamp) {
    joinedAt = min(joinedAt, now)
    for place in tracks.indices { tracks[place].liveSince = tracks[place].liveSince.map { min($0, now) } }
  }
}

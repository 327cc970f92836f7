import CallMessages
import Contract
import MediaModel

/// A call after a restart of the server (rule 11): its members as they were, all without media and signaling from now on.
extension Call {
  /// Restores the timers of everything under way. Timers that expired meanwhile are due immediately.
  func resume(now: Timestamp, out: inout Outputs) {
    // The clock may have been set back since.
    out.set(.expiry, at: min(startedAt, now) + rules.lifetime)
    if let rotateAt = epochs.rotateAt { out.set(.rotate, at: rotateAt) }
    if let aloneSince = lastSeen.aloneSince { out.set(.alone, at: desertion(of: aloneSince)) }
    if epochs.isTelling { out.set(.confirmed, at: now + .seconds(1)) }
    if epochs.pending != nil { out.set(.batch, at: now + Epochs.batchTime) }
    for member in members {
      let user = member.user
      switch member.phase {
      case .ringing(let ringing): out.set(.ring(user), at: ringing.expiresAt)
      case .joined: for participant in member.participants { resume(participant, of: member, now: now, out: &out) }
      case .disconnected(let participant):
        let since = participant.goneSince.map { $0 + limits.disconnectTime } ?? now
        out.set(.away(user), at: since + rules.awayTime)
      case .left, .declined, .missed, .cancelled: break
      }
    }
  }

  private func resume(_ participant: Participant, of member: Member, now: Timestamp, out: inout Outputs) {
    let device = participant.device
    out.add(.peerAdded(participant.peer, member.user))
    out.set(.disconnect(device), at: now + limits.disconnectTime)
    if participant.number == member.arriving?.number {
      out.set(.connect(device), at: now + min(Self.transferTime, rules.connectTime ?? Self.transferTime))
    } else if let limit = rules.connectTime {
      out.set(.connect(device), at: now + limit)
    }
  }

  /// Marks the restored state as stored, except for members whose times changed because the clock was set back.
  mutating func countAsStored(_ written: Stored.CallRecord) {
    journal.isStored = true
    journal.epoch = epochs.newest.number
    journal.entries = epochs.newest.numbered
    journal.link = epochs.newest.number
    journal.ringEnvelopes = Set(epochs.ringEnvelopes.keys)
    journal.staying = Set(members.filter(\.isJoined).map(\.user))
    for member in members { journal.numbers.formUnion(member.participants.map(\.number)) }
    for record in written.members {
      journal.members[record.user] = record
      if member(record.user).map(stored) != record { journal.touched.insert(record.user) }
    }
  }
}

extension StoredMember {
  /// - Parameter peer: makes one for a joined participant, which has no media yet.
  func member(of call: StoredCall, limits: CallLimits, now: Timestamp, peer: () -> PeerID) -> Member? {
    guard let phase = phase(of: call, limits: limits, now: now, peer: peer) else { return nil }
    var member = Member(user: user, name: name, phase: phase)
    member.hasBeenIn = hasBeenIn
    member.cameByLink = cameByLink
    if member.isJoined, participants.count > 1 {
      member.arriving = Participant(restoring: participants[1], of: user, peer: peer(), goneSince: now)
    }
    return member
  }

  private func phase(of call: StoredCall, limits: CallLimits, now: Timestamp, peer: () -> PeerID) -> Member.Phase? {
    switch phase {
    case .ringing:
      return ringing.map {
        .ringing(
          Member.Ringing(
            by: $0.by, expiresAt: $0.expiresAt, waiting: $0.waiting, metadata: $0.metadata ?? call.metadata,
            isPushed: $0.isPushed))
      }
    case .joined:
      return participants.first.map { .joined(Participant(restoring: $0, of: user, peer: peer(), goneSince: now)) }
    case .disconnected:
      let since = (disconnectedAt ?? now) - limits.disconnectTime
      return participants.first.map {
        .disconnected(Participant(restoring: $0, of: user, peer: peer(), goneSince: since))
      }
    case .left: return .left
    case .declined: return .declined
    case .missed: return .missed
    case .cancelled: return .cancelled
    }
  }
}

extension Participant {
  /// Its DTLS fingerprint is not restored: the media plane is new, and takes any first offer.
  init(restoring stored: StoredParticipant, of user: UserID, peer: PeerID, goneSince: Timestamp) {
    number = stored.number
    device = Device(user: user, device: stored.device)
    joinId = stored.joinId
    self.peer = peer
    // The clock may have been set back since.
    joinedAt = min(stored.joinedAt, goneSince)
    signaling = .gone(since: goneSince)
    isHeld = stored.isHeld
    tracks = TrackTable(
      participant: stored.number,
      restoring: stored.tracks.map {
        TrackTable.Track(
          id: TrackID(participant: stored.number, index: $0.index), mid: $0.mid, source: $0.source, muted: $0.muted,
          liveSince: $0.liveSince)
      })
  }
}

extension StoredParticipant {
  /// Its place in the epochs; nil for a device without keys.
  func keyedDevice(of user: UserID) -> KeyedDevice? {
    guard let joinKey, let keys else { return nil }
    return KeyedDevice(
      number: number, device: Device(user: user, device: device), joinId: joinId, joinKey: joinKey, keys: keys,
      refresh: refresh, isConnected: false)
  }
}

/// The clock may have been set back since the last run. Times in the future count from now, so that no ring, rotation or absence lasts longer
/// than from the new start on.
extension Stored.CallRecord {
  func bounded(by now: Timestamp, _ rules: CallRules) -> Stored.CallRecord {
    var bounded = self
    bounded.progress.activeSince = progress.activeSince.map { min($0, now) }
    bounded.progress.aloneSince = progress.aloneSince.map { min($0, now) }
    bounded.progress.lastThere = progress.lastThere.map { min($0, now) }
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

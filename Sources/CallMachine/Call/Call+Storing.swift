import CallMessages
import Contract
import MediaModel

/// Storing a call on disk: only changes are written.
extension Call {
  /// Adds the differences from the stored state, and marks them as stored.
  mutating func takeChanges(now: Timestamp, into changes: inout [StoreChange]) {
    if !journal.isStored { begin(&changes) }
    let progress = storedProgress
    if progress != journal.progress {
      changes.append(.progress(id, progress))
      journal.progress = progress
      // The initiator's outcome is the outcome of the call.
      journal.touched.insert(initiator)
    }
    if epochs.newest.number != journal.epoch {
      changes.append(.epoch(id, epochs.stored))
      takeEntries(&changes)
      journal.epoch = epochs.newest.number
    }
    takeLinks(&changes)
    for (number, tag) in epochs.confirmations.takeUnstored(epochs.newest.list) {
      changes.append(.confirmation(id, number, tag))
    }
    takeSilenced(into: &changes)
    epochs.admissions.takeUnstored(of: id, into: &changes)
    if !journal.touched.isEmpty {
      for user in journal.touched.sorted() { takeChanges(of: user, now: now, into: &changes) }
      journal.touched = []
    }
    takeRingEnvelopes(&changes)
  }

  private mutating func begin(_ changes: inout [StoreChange]) {
    changes.append(.call(stored))
    changes.append(.history(.call(id, media, startedAt: startedAt)))
    journal.isStored = true
  }

  private mutating func takeChanges(of user: UserID, now: Timestamp, into changes: inout [StoreChange]) {
    guard let member = member(user) else { return }
    let record = stored(member)
    if record != journal.members[user] {
      changes.append(.member(id, record))
      journal.members[user] = record
    }
    for participant in member.participants where journal.numbers.insert(participant.number).inserted {
      changes.append(.number(id, participant.number, number(of: participant)))
    }
    let part = HistoryFact.part(
      id, user, name: member.name, user == initiator ? .outgoing : .incoming, outcome(of: member))
    if part != journal.parts[user] {
      changes.append(.history(part))
      journal.parts[user] = part
    }
    if member.isJoined, journal.staying.insert(user).inserted {
      changes.append(.history(.came(id, user, at: now)))
    } else if !member.isJoined, journal.staying.remove(user) != nil {
      changes.append(.history(.went(id, user, at: now)))
    }
  }

  /// Adds what the newest list has and the stored one has not, and the reverse.
  private mutating func takeEntries(_ changes: inout [StoreChange]) {
    let entries = epochs.newest.numbered
    for (number, entry) in entries.sorted(by: { $0.key < $1.key }) where journal.entries[number] != entry {
      changes.append(.entry(id, entry))
    }
    changes += journal.entries.keys.filter { entries[$0] == nil }.sorted().map { .entryGone(id, $0) }
    journal.entries = entries
  }

  /// Adds the links of the epochs that were announced since.
  private mutating func takeLinks(_ changes: inout [StoreChange]) {
    guard let last = epochs.links.last?.epoch, last != journal.link else { return }
    let new = epochs.links.reversed().prefix { $0.epoch > journal.link ?? 0 }
    changes += new.reversed().map { .link(id, $0) }
    journal.link = last
  }

  /// All of them exist from the start, and are removed one by one.
  private mutating func takeRingEnvelopes(_ changes: inout [StoreChange]) {
    let kept = epochs.ringEnvelopes
    guard kept.count != journal.ringEnvelopes.count else { return }
    for device in journal.ringEnvelopes.subtracting(kept.keys).sorted() {
      changes.append(.ringEnvelopeOver(id, device))
    }
    for device in Set(kept.keys).subtracting(journal.ringEnvelopes).sorted() {
      if let envelope = kept[device] { changes.append(.ringEnvelope(id, envelope)) }
    }
    journal.ringEnvelopes = Set(kept.keys)
  }

  /// The whole state of the call, stored or not.
  func everything(now: Timestamp) -> [StoreChange] {
    var copy = self
    var changes: [StoreChange] = []
    // Facts of history that were written are not lost by a rewrite, and repeated ones change nothing.
    copy.journal = CallJournal()
    copy.journal.touched = Set(members.map(\.user))
    copy.journal.silenced = Set(silenced.names.keys)
    copy.journal.staying = journal.staying
    copy.epochs.confirmations.countAsUnstored()
    copy.epochs.admissions.countAsUnstored()
    copy.takeChanges(now: now, into: &changes)
    return changes
  }

  // MARK: records

  private var stored: StoredCall {
    StoredCall(
      id: id, media: media, initiator: initiator, startedAt: startedAt, policy: rules.shown, metadata: metadata,
      starter: start.token.device, joinId: start.token.joinId, reply: start.storedReply)
  }

  private mutating func takeSilenced(into changes: inout [StoreChange]) {
    for user in journal.silenced.sorted() where journal.parts[user] == nil {
      guard let name = silenced.names[user] else { continue }
      let part = HistoryFact.part(id, user, name: name, user == initiator ? .outgoing : .incoming, .missed)
      changes.append(.history(part))
      journal.parts[user] = part
    }
    journal.silenced = []
  }

  private var storedProgress: StoredProgress {
    StoredProgress(
      activeSince: activeSince, lastNumber: numbers.last, soleCallee: soleCallee,
      hasSilenced: silenced.wasAny ? true : nil,
      aloneSince: lastSeen.aloneSince, lastThere: lastSeen.departed, failures: failures,
      links: links?.stored, rotateAt: epochs.rotateAt, epoch: epochs.current, isSettled: epochs.isSettled,
      distributor: epochs.distributor,
      revisionLimit: (revision + Self.revisionStep - 1) / Self.revisionStep * Self.revisionStep,
      recording: recording.map { StoredCallRecording(statement: $0.statement, since: $0.since) },
      endedRecordings: endedRecordings.isEmpty ? nil : endedRecordings)
  }

  func stored(_ member: Member) -> StoredMember {
    var ringing: StoredMember.Ringing?
    if case .ringing(let ring) = member.phase {
      ringing = StoredMember.Ringing(
        by: ring.by, expiresAt: ring.expiresAt, waiting: ring.waiting, isPushed: ring.isPushed,
        metadata: ring.metadata == metadata ? nil : ring.metadata)
    }
    var disconnectedAt: Timestamp?
    if case .disconnected(let participant) = member.phase {
      disconnectedAt = participant.goneSince.map { $0 + limits.disconnectTime }
    }
    return StoredMember(
      user: member.user, name: member.name, place: place(of: member.user) ?? 0, phase: member.state.state,
      hasBeenIn: member.hasBeenIn, cameByLink: member.cameByLink, ringing: ringing,
      participants: member.participants.map(stored),
      disconnectedAt: disconnectedAt)
  }

  private func number(of participant: Participant) -> StoredNumber {
    let kind = joins.kind(of: JoinToken(device: participant.device, joinId: participant.joinId))
    return StoredNumber(
      device: participant.device, joinId: kind == nil ? nil : participant.joinId, cameBy: kind?.rawValue)
  }

  private func stored(_ participant: Participant) -> StoredParticipant {
    let keyedDevice = epochs.keyedDevices[participant.device].flatMap { $0.joinId == participant.joinId ? $0 : nil }
    return StoredParticipant(
      number: participant.number, device: participant.device.device, joinId: participant.joinId,
      joinedAt: participant.joinedAt,
      isHeld: participant.isHeld,
      tracks: participant.tracks.tracks.map {
        StoredParticipant.Track(
          index: $0.id.index, mid: $0.mid, source: $0.source, muted: $0.muted, liveSince: $0.liveSince)
      },
      joinKey: keyedDevice?.joinKey, refresh: keyedDevice?.refresh, keys: keyedDevice?.keys)
  }

  // MARK: forgetting

  /// Deletes everything about a user who is neither present nor ringing.
  mutating func forget(_ user: UserID) {
    silenced.forget(user)
    removeMember(user)
    journal.members[user] = nil
    journal.parts[user] = nil
    journal.staying.remove(user)
    journal.touched.remove(user)
    if start.forget(user) { journal.isStored = false }
  }

  // MARK: history

  /// nil while it is open.
  private func outcome(of member: Member) -> HistoryEntry.Outcome? {
    guard member.user != initiator else { return outcome }
    if member.hasBeenIn { return .answered }
    return switch member.phase {
    case .declined: .declined
    case .missed: .missed
    case .cancelled: .cancelled
    case .ringing, .joined, .disconnected, .left: nil
    }
  }

  /// The outcome for the initiator.
  private var outcome: HistoryEntry.Outcome? {
    switch phase {
    case .active, .ended(wasActive: true): return .answered
    case .ringing: return nil
    case .ended: break
    }
    // The outcome is `declined` even if the initiator hung up after all callees had declined.
    return switch refusal {
    case .declined: .declined
    case .noAnswer: .missed
    default: silenced.wasAny ? .missed : .cancelled
    }
  }
}

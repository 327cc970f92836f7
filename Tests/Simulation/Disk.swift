package import CallMessages
import Calls
import Contract
package import MediaModel
package import Recording

/// The result of `.store` effects, instead of a database.
package struct Disk {
  package private(set) var stored = Stored()
  package private(set) var history: [HistoryFact] = []
  package private(set) var reports: [StoredReport] = []
  package private(set) var recordings: [RecordingFact] = []
  package private(set) var writes = 0
  private var calls: [CallID: Pieces] = [:]

  /// A call, as far as it has been written.
  private struct Pieces {
    var call: StoredCall
    var progress: StoredProgress?
    var epoch: StoredEpoch?
    var entries: [ParticipantNumber: ListEntry] = [:]
    var members: [UserID: StoredMember] = [:]
    var ringEnvelopes: [Envelope] = []
    var links: [EpochLink] = []
    var confirmations: [ParticipantNumber: Base64Bytes] = [:]
    var words: [StoredWord.Subject: StoredWord] = [:]
    var signers: [Base64Bytes: Signer] = [:]

    var whole: Stored.CallRecord? {
      guard let progress, let epoch else { return nil }
      return Stored.CallRecord(
        call: call, progress: progress, epoch: epoch,
        entries: entries.values.sorted { $0.participant < $1.participant }, members: Array(members.values),
        ringEnvelopes: ringEnvelopes, epochLinks: links, confirmations: confirmations, words: Array(words.values),
        signers: Array(signers.values))
    }
  }

  package init() {}

  package mutating func write(_ effects: [CallMessages.Effect]) {
    for case .store(let change) in effects {
      writes += 1
      apply(change)
    }
  }

  /// The contents that a server reads at its start.
  package mutating func read() -> Stored {
    var read = stored
    read.calls = calls.values.compactMap(\.whole)
    stored.boots += 1
    read.boots += 1
    return read
  }

  package func call(_ id: CallID) -> Stored.CallRecord? { calls[id]?.whole }

  package var isEmptyOfCalls: Bool { calls.isEmpty }

  private mutating func apply(_ change: StoreChange) {
    switch change {
    case .reset:
      calls = [:]
      stored.devices = []
      stored.mailboxes = [:]
      stored.presence = [:]
      stored.revokes = [:]
      stored.links = []
    case .call(let call): calls[call.id, default: Pieces(call: call)].call = call
    case .progress(let id, let progress): calls[id]?.progress = progress
    case .epoch(let id, let epoch):
      calls[id]?.epoch = epoch
      calls[id]?.confirmations = [:]
    case .entry(let id, let entry): calls[id]?.entries[entry.participant] = entry
    case .entryGone(let id, let number): calls[id]?.entries[number] = nil
    case .link(let id, let link):
      calls[id]?.links.removeAll { $0.epoch <= link.endOfForgotten ?? 0 }
      calls[id]?.links.append(link)
    case .confirmation(let id, let participant, let tag): calls[id]?.confirmations[participant] = tag
    case .word(let id, let word): calls[id]?.words[word.subject] = word
    case .wordGone(let id, let subject): calls[id]?.words[subject] = nil
    case .signer(let id, let signer): calls[id]?.signers[signer.fingerprint] = signer
    case .signerGone(let id, let fingerprint): calls[id]?.signers[fingerprint] = nil
    case .member(let id, let member): calls[id]?.members[member.user] = member
    case .memberGone(let id, let user): calls[id]?.members[user] = nil
    case .number(let id, let number, let join): stored.numbers[id, default: [:]][number] = join
    case .ringEnvelope(let id, let envelope): calls[id]?.ringEnvelopes.append(envelope)
    case .ringEnvelopeOver(let id, let device): calls[id]?.ringEnvelopes.removeAll { $0.to == device }
    case .ended(let end):
      calls[end.call] = nil
      stored.ended.append(end)
      stored.endedIDs[end.call] = end.endedAt
    case .device(let device):
      stored.devices.removeAll { ($0.entry.user, $0.entry.device) == (device.entry.user, device.entry.device) }
      stored.devices.append(device)
    case .deviceGone(let device):
      stored.devices.removeAll { ($0.entry.user, $0.entry.device) == (device.user, device.device) }
    case .revokes(let user, let revokes): stored.revokes[user] = revokes.isEmpty ? nil : revokes
    case .mailbox(let device, let mailbox): stored.mailboxes[device] = mailbox.isEmpty ? nil : mailbox
    case .presence(let user, let setting): stored.presence[user] = setting
    case .lastingLink(let link):
      if let place = stored.links.firstIndex(where: { $0.id == link.id }) {
        stored.links[place] = link
      } else {
        stored.links.append(link)
      }
    case .lastingLinkGone(let id): stored.links.removeAll { $0.id == id }
    case .history(let fact): history.append(fact)
    case .report(let report): reports.append(report)
    case .recording(let fact): recordings.append(fact)
    case .forgotten(let user):
      stored.devices.removeAll { $0.entry.user == user }
      if !user.isGuest { reports.removeAll { [$0.report.by, $0.report.user].contains(user) } }
      history.removeAll { fact in
        switch fact {
        case .part(_, user, _, _, _), .came(_, user, _), .went(_, user, _): true
        default: false
        }
      }
      stored.mailboxes = stored.mailboxes.filter { $0.key.user != user }
      stored.presence[user] = nil
      stored.revokes[user] = nil
      stored.links.removeAll { $0.device.user == user }
      for place in stored.ended.indices { stored.ended[place].forget(user) }
    case .running(let at): stored.ranUntil = at
    }
  }

  /// The same state in a canonical order, for comparison.
  package var contents: Set<StoreChange> {
    var contents: Set<StoreChange> = []
    for call in calls.values {
      contents.insert(.call(call.call))
      if let progress = call.progress { contents.insert(.progress(call.call.id, progress)) }
      if let epoch = call.epoch { contents.insert(.epoch(call.call.id, epoch)) }
      contents.formUnion(call.entries.values.map { .entry(call.call.id, $0) })
      contents.formUnion(call.members.values.map { .member(call.call.id, $0) })
      contents.formUnion(call.ringEnvelopes.map { .ringEnvelope(call.call.id, $0) })
      contents.formUnion(call.links.map { .link(call.call.id, $0) })
      contents.formUnion(call.confirmations.map { .confirmation(call.call.id, $0.key, $0.value) })
      contents.formUnion(call.words.values.map { .word(call.call.id, $0) })
      contents.formUnion(call.signers.values.map { .signer(call.call.id, $0) })
    }
    contents.formUnion(stored.devices.map(StoreChange.device))
    contents.formUnion(stored.revokes.map { .revokes($0.key, $0.value) })
    contents.formUnion(stored.mailboxes.map { .mailbox($0.key, $0.value) })
    contents.formUnion(stored.links.map(StoreChange.lastingLink))
    contents.formUnion(stored.presence.map { .presence($0.key, $0.value) })
    return contents
  }
}

extension Node {
  /// The rows that should be on the disk now.
  package var storable: Set<StoreChange> {
    Set(everything).filter {
      switch $0 {
      case .reset, .history, .number: false
      default: true
      }
    }
  }
}

import Contract
import MediaModel

/// Storing state on disk (rule 11).
extension Calls {
  /// Returns the command's changes to the state that survives a restart.
  mutating func takeChanges() -> [StoreChange] {
    guard !journal.isEmpty || presence.hasChanges else { return [] }
    var changes = journal.changes
    for id in journal.calls.sorted() { calls[id]?.takeChanges(now: now, into: &changes) }
    for device in journal.devices.sorted() { changes.append(storedDevice(device)) }
    for user in journal.revokes.sorted() { changes.append(.revokes(user, directory.revokes(of: user))) }
    for device in journal.mailboxes.sorted() {
      if let change = takeMailbox(device) { changes.append(change) }
    }
    for user in presence.takeChanges() { changes.append(.presence(user, presence.stored(user))) }
    // Last, so that nothing of the user comes behind it.
    changes += journal.forgotten.map(StoreChange.forgotten)
    journal = Journal()
    return changes
  }

  /// All there is, for a disk that missed some changes.
  package var everything: [StoreChange] {
    var changes = [StoreChange.reset]
    for id in calls.keys.sorted() { changes += calls[id]?.everything(now: now) ?? [] }
    for device in directory.devices {
      guard let record = directory[device] else { continue }
      if record.entry != nil { changes.append(storedDevice(device)) }
      let mailbox = record.mailbox.stored
      if !mailbox.isEmpty { changes.append(.mailbox(device, mailbox)) }
    }
    for user in directory.usersWithRevokes { changes.append(.revokes(user, directory.revokes(of: user))) }
    return changes + presence.everything
  }

  private func storedDevice(_ device: Device) -> StoreChange {
    guard let entry = directory[device]?.entry else { return .deviceGone(device) }
    return .device(StoredDevice(entry: entry, userName: directory.name(of: device.user)))
  }

  private mutating func takeMailbox(_ device: Device) -> StoreChange? {
    let wasStored = directory[device]?.mailbox.isStored ?? true
    let stored = directory[device]?.mailbox.stored ?? StoredMailbox(envelopes: [], rung: [])
    directory[device]?.mailbox.isStored = !stored.isEmpty
    return stored.isEmpty && !wasStored ? nil : .mailbox(device, stored)
  }

  // MARK: what a command touched

  /// Records the deadline of `.rotate`, the only one that does not follow from other state.
  mutating func note(_ timer: CallTimer, _ due: Timestamp?, of call: CallID) {
    if case .rotate = timer { calls[call]?.epochs.rotateAt = due }
  }

  /// A user with keys has another name now.
  mutating func noteName(_ identity: Identity) {
    let user = identity.device.user
    guard let name = identity.name, name != directory.name(of: user) else { return }
    for entry in directory.entries(of: user) { journal.devices.insert(Device(user: user, device: entry.device)) }
  }

  mutating func forget(_ device: Device) {
    if directory[device]?.entry != nil { journal.devices.insert(device) }
    if directory[device]?.mailbox.isStored == true { journal.mailboxes.insert(device) }
    directory.forget(device)
  }

  /// The call has ended: all that stays is that it was.
  mutating func close(_ call: inout Call, _ end: Ended) {
    // The outcome for the initiator is the call's, and settled only now.
    call.journal.touched.insert(call.initiator)
    call.takeChanges(now: now, into: &journal.changes)
    journal.changes.append(.history(.ended(call.id, at: now)))
    var reply = call.firstReply
    reply?.ice = ICE()
    var stored = StoredEnd(
      call: call.id, endedAt: now, end: end, users: call.members.map(\.user), starter: call.startToken.device,
      joinId: call.startToken.joinId, reply: reply)
    // No member any more: forgotten, while the call went on.
    if call.member(call.initiator) == nil { stored.forgetStart() }
    journal.changes.append(.ended(stored))
  }
}

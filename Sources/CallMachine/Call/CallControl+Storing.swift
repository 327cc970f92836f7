package import CallMessages
import Contract
import MediaModel

/// Storing state on disk (rule 11).
extension CallControl {
  /// Returns the changes to the state that survives a restart.
  package mutating func takeChanges() -> [StoreChange] {
    guard !journal.calls.isEmpty || !journal.changes.isEmpty else { return [] }
    var changes = journal.changes
    for id in journal.calls.sorted() { calls[id]?.takeChanges(now: now, into: &changes) }
    journal = Journal()
    return changes
  }

  /// The whole state of running calls.
  package var everything: [StoreChange] { calls.keys.sorted().flatMap { calls[$0]?.everything(now: now) ?? [] } }

  // MARK: what a message touched

  /// Records the deadline of `.rotate`, the only one that does not follow from other state.
  mutating func note(_ timer: CallTimer, _ due: Timestamp?, of call: CallID) {
    if case .rotate = timer { calls[call]?.epochs.rotateAt = due }
  }

  /// The call has ended: only a record of it remains.
  mutating func close(_ call: inout Call, _ end: Ended) {
    // The initiator's outcome is the outcome of the call, which is only now settled.
    call.journal.touched.insert(call.initiator)
    call.takeChanges(now: now, into: &journal.changes)
    journal.changes.append(.history(.ended(call.id, at: now)))
    var stored = StoredEnd(
      call: call.id, endedAt: now, end: end, users: call.members.map(\.user), starter: call.start.token.device,
      joinId: call.start.token.joinId, reply: call.start.storedReply)
    // No longer a member: the user was forgotten while the call went on.
    if call.member(call.initiator) == nil { stored.forgetStart() }
    journal.changes.append(.ended(stored))
  }
}

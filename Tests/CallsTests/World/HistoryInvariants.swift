@testable import Calls
@testable import CallMachine
import Contract
import MediaModel

import CallMessages

/// History as observed in the world, compared with the stored facts (protocol section 8).
struct HistoryInvariants {
  struct Stay: Equatable {
    var came: Timestamp
    var went: Timestamp?
  }

  /// One user's part in one call.
  struct Part: Equatable {
    var direction: HistoryEntry.Direction
    var outcome: HistoryEntry.Outcome?
    var stays: [Stay] = []
  }

  private struct Chronicle {
    var initiator: UserID
    var parts: [UserID: Part] = [:]
    var last: [UserID: MemberPhase] = [:]
    /// They were not rung, and have missed it.
    var silenced: Set<UserID> = []
    var hasSilenced = false
    /// Whether a user other than the initiator was in.
    var wasAnswered = false
    /// The user whose entry ended the call, as nobody else was there.
    var visitor: UserID?
    var isOver = false
  }

  let verdict: Verdict
  private var chronicles: [CallID: Chronicle] = [:]
  private var stored: [CallID: [UserID: Part]] = [:]
  private var ended: Set<CallID> = []

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep) {
    for case .store(.history(let fact)) in step.effects { read(fact) }
    if case .forget(let user) = step.command {
      forget(user, in: step.isWhole ? Array(Set(stored.keys).union(chronicles.keys)) : step.changed + step.gone)
    }
    let gone = step.gone
    for id in step.changed { follow(id, step) }
    for id in gone { close(id, step) }
    for id in step.changed + gone { compare(id) }
  }

  // MARK: what was stored

  private mutating func read(_ fact: HistoryFact) {
    switch fact {
    case .call(let id, _, _): if stored[id] == nil { stored[id] = [:] }
    case .part(let id, let user, _, let direction, let outcome):
      stored[id, default: [:]][user, default: Part(direction: direction)].outcome = outcome
    case .came(let id, let user, let at): stored[id]?[user]?.stays.append(Stay(came: at))
    case .went(let id, let user, let at):
      guard let last = stored[id]?[user]?.stays.indices.last else { return }
      verdict.require(.historyAgrees, stored[id]?[user]?.stays[last].went == nil, "somebody went twice")
      stored[id]?[user]?.stays[last].went = at
    case .ended(let id, _): ended.insert(id)
    }
  }

  private mutating func forget(_ user: UserID, in calls: [CallID]) {
    for id in calls {
      chronicles[id]?.parts[user] = nil
      chronicles[id]?.last[user] = nil
      chronicles[id]?.silenced.remove(user)
      stored[id]?[user] = nil
    }
  }

  // MARK: what happened

  private mutating func follow(_ id: CallID, _ step: WorldStep) {
    guard let view = step.after[id] else { return }
    var chronicle = chronicles[id] ?? Chronicle(initiator: view.initiator)
    // A restart forgets them, since their history has been written.
    chronicle.silenced.formUnion(step.node.control.calls[id]?.silenced.names.keys.map { $0 } ?? [])
    if !chronicle.silenced.isEmpty { chronicle.hasSilenced = true }
    for member in view.members.values {
      let direction: HistoryEntry.Direction = member.user == view.initiator ? .outgoing : .incoming
      var part = chronicle.parts[member.user] ?? Part(direction: direction)
      part.follow(isIn: member.state == .joined, at: step.now)
      chronicle.parts[member.user] = part
      chronicle.last[member.user] = member.state
      if member.user != view.initiator, member.state == .joined { chronicle.wasAnswered = true }
    }
    chronicles[id] = chronicle
  }

  private mutating func close(_ id: CallID, _ step: WorldStep) {
    guard var chronicle = chronicles[id] else { return }
    chronicle.isOver = true
    if step.entry?.call == id, step.isOK, let user = step.asker?.user {
      chronicle.visitor = user
      if user != chronicle.initiator { chronicle.wasAnswered = true }
    }
    for user in chronicle.parts.keys {
      chronicle.parts[user]?.follow(isIn: false, at: step.now)
      if chronicle.last[user] == .ringing { chronicle.last[user] = end(of: user, id, step) }
    }
    chronicles[id] = chronicle
  }

  /// The end of a ring that was the last of its call: its devices are told.
  private func end(of user: UserID, _ id: CallID, _ step: WorldStep) -> MemberPhase {
    if case .calls(.call(id, .decline)) = step.request, step.asker?.user == user { return .declined }
    if step.isTimeout, let ring = step.before[id]?.rings[user], ring.expiresAt <= step.now {
      // Another timer that was due may have ended the call before.
      return stored[id]?[user]?.outcome == .cancelled ? .cancelled : .missed
    }
    return .cancelled
  }

  private func compare(_ id: CallID) {
    guard let chronicle = chronicles[id] else { return }
    verdict.require(.historyAgrees, ended.contains(id) == chronicle.isOver, "the end of a call is not in the history")
    for (user, part) in chronicle.parts {
      var expected = part
      expected.outcome = outcome(of: user, chronicle)
      let found = stored[id]?[user]
      // A user who joined and left in one step has no stay.
      verdict.require(
        .historyAgrees, found == expected,
        "history of \(user.text) has \(String(describing: found)), it was \(expected)")
    }
    let silenced = chronicle.silenced.filter { chronicle.parts[$0] == nil }
    for user in silenced {
      let expected = Part(direction: user == chronicle.initiator ? .outgoing : .incoming, outcome: .missed)
      verdict.require(.historyAgrees, stored[id]?[user] == expected, "\(user.text) was not rung and has not missed it")
    }
    verdict.require(
      .historyAgrees, stored[id]?.count == chronicle.parts.count + silenced.count, "history has a stranger")
  }

  private func outcome(of user: UserID, _ chronicle: Chronicle) -> HistoryEntry.Outcome? {
    guard user == chronicle.initiator else {
      guard chronicle.parts[user]?.stays.isEmpty == true, chronicle.visitor != user else { return .answered }
      return chronicle.last[user].flatMap(Self.outcome)
    }
    // For the initiator, the answers of the others count.
    if chronicle.wasAnswered { return .answered }
    guard chronicle.isOver else { return nil }
    let rung = chronicle.last.filter { $0.key != user || chronicle.parts[user]?.stays.isEmpty == true }.map(\.value)
    if !rung.isEmpty, rung.allSatisfy({ $0 == .declined }) { return .declined }
    return rung.contains(.missed) || chronicle.hasSilenced ? .missed : .cancelled
  }

  private static func outcome(_ phase: MemberPhase) -> HistoryEntry.Outcome? {
    switch phase {
    case .declined: .declined
    case .missed: .missed
    case .cancelled: .cancelled
    case .ringing, .joined, .left, .disconnected: nil
    }
  }
}

extension HistoryInvariants.Part {
  fileprivate mutating func follow(isIn: Bool, at now: Timestamp) {
    let isOpen = stays.last.map { $0.went == nil } ?? false
    if isIn, !isOpen { stays.append(HistoryInvariants.Stay(came: now)) }
    if !isIn, isOpen { stays[stays.count - 1].went = now }
  }
}

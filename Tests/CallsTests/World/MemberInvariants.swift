@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel

import CallMessages
@testable import Calls

/// Rings, members and participants (protocol section 4, rules 1 to 13).
struct MemberInvariants {
  let verdict: Verdict
  private var numbers: [CallID: Set<ParticipantNumber>] = [:]
  /// The kind of request by which each participant came in.
  private var arrivals: [CallID: [ParticipantNumber: JoinMemory.Kind]] = [:]
  /// The devices that answered a user's current or last ring.
  private var answers: [CallID: [UserID: Set<Device>]] = [:]
  private(set) var causes: [MemberCause: Int] = [:]

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep) {
    checkAnswers(step)
    checkStart(step)
    checkReach(step)
    for id in step.changed {
      guard let call = step.node.control.calls[id], let view = step.after[id] else { continue }
      checkCounts(call, step)
      for member in view.members.values { check(member, id, view, step) }
      for user in step.before[id]?.members.keys.filter({ view.members[$0] == nil }) ?? [] {
        verdict.require(.nobodyIsRemoved, step.isForgetting, "\(user.text) is no longer a member")
      }
      if step.isWhole, case .request = step.command { for member in call.members { checkHolds(member, step.node) } }
    }
    checkEnds(step)
    for case .client(.event(_, let delivery)) in step.effects {
      for change in delivery.message.body.memberChanges { causes[change.cause, default: 0] += 1 }
    }
  }

  // MARK: one member

  private mutating func check(_ member: MemberState, _ id: CallID, _ view: CallView, _ step: WorldStep) {
    let old = step.before[id]?.members[member.user]
    let most = member.state == .joined ? 2 : member.state == .disconnected ? 1 : 0
    verdict.require(
      .memberFollowsTable, (min(most, 1)...most).contains(member.participants.count),
      "who is \(member.state) has \(member.participants.count) participants")
    verdict.require(
      .memberFollowsTable, MemberInvariants.mayBecome(member.state, from: old?.state, steps: step.isTimeout ? 2 : 1),
      "\(old.map { "\($0.state)" } ?? "nobody") became \(member.state)")
    let known = Set(old?.participants.map(\.participant) ?? [])
    for participant in member.participants where !known.contains(participant.participant) {
      checkArrival(participant, of: member.user, id, step)
    }
    for participant in member.participants {
      guard let same = old?.participants.first(where: { $0.participant == participant.participant }) else { continue }
      verdict.require(
        .numberIsNew, same.joinId == participant.joinId && same.device == participant.device,
        "number \(participant.participant) is another participant's now")
    }
    if member.participants.count == 2 {
      let newer = member.participants[1].participant
      verdict.require(
        .oneDeviceAnswers, arrivals[id]?[newer] == .transfer, "two devices of a user are in, without a transfer")
      verdict.require(
        .oneDeviceAnswers, member.participants[0].device != member.participants[1].device, "a device is in twice")
    }
    if let ring = step.before[id]?.rings[member.user], view.rings[member.user] != ring {
      checkRingEnd(member, ring, id, step)
    }
    if member.state == .ringing, old?.state != .ringing { answers[id]?[member.user] = nil }
    if old?.state == .joined, member.state == .left {
      let isOwn = step.asker?.user == member.user
      verdict.require(.nobodyIsRemoved, isOwn || step.isTimeout || step.isForgetting, "somebody was removed")
    }
  }

  /// The table of protocol section 4.
  private static func mayBecome(_ to: MemberPhase, from: MemberPhase?, steps: Int) -> Bool {
    let next: [MemberPhase]
    switch from {
    case to?: return true
    case nil: next = [.ringing, .joined]
    case .ringing: next = [.joined, .declined, .missed, .cancelled]
    case .joined: next = [.disconnected, .left]
    case .disconnected: next = [.joined, .left]
    case .left, .declined, .missed, .cancelled: next = [.ringing, .joined]
    }
    return next.contains(to) || (steps > 1 && next.contains { mayBecome(to, from: $0, steps: steps - 1) })
  }

  private mutating func checkArrival(
    _ participant: ParticipantState, of user: UserID, _ id: CallID, _ step: WorldStep
  ) {
    let device = Device(user: user, device: participant.device)
    let entry = step.entry
    verdict.require(
      .cameInByRequest,
      step.asker == device && step.isOK && entry != nil && (entry?.call ?? id) == id,
      "a device is in that did not ask for it")
    let number = participant.participant
    verdict.require(.numberIsNew, numbers[id, default: []].insert(number).inserted, "number \(number) is used again")
    var kind = entry?.kind
    // On a device with a pending transfer, any request continues the transfer.
    let others = step.before[id]?.members[user]?.participants ?? []
    if let old = others.first(where: { $0.device == participant.device }), others.count == 2,
      arrivals[id]?[old.participant] == .transfer
    {
      kind = .transfer
    }
    arrivals[id, default: [:]][number] = kind
  }

  /// A ring is over, or another one has replaced it: that never happens in one step.
  private func checkRingEnd(_ member: MemberState, _ ring: CallView.Ring, _ id: CallID, _ step: WorldStep) {
    let asker = step.asker?.user
    let isRight: Bool
    switch member.state {
    case .ringing: isRight = false
    case .joined: isRight = asker == member.user
    case .declined:
      if case .calls(.call(_, .decline)) = step.request { isRight = asker == member.user } else { isRight = false }
    case .missed: isRight = step.isTimeout && ring.expiresAt <= step.now
    case .cancelled:
      let initiator = step.before[id]?.initiator
      isRight =
        asker == ring.by || asker == initiator || step.isTimeout || step.isForgetting || step.isService
        || (asker == member.user && isMet(ring.by, beside: id, step))
    case .left, .disconnected: isRight = false
    }
    verdict.require(.ringEndsOnce, isRight, "a ring ended in \(member.state) by \(asker?.text ?? "nobody")")
  }

  /// The request joined another call, in which this user is: they need not ring each other here ("Calls that cross").
  private func isMet(_ caller: UserID, beside id: CallID, _ step: WorldStep) -> Bool {
    guard step.isOK, let other = step.entry?.call, other != id else { return false }
    return step.after[other]?.members[caller]?.state == .joined
  }

  /// Exactly one of two devices that answer one ring wins (rule 2).
  private mutating func checkAnswers(_ step: WorldStep) {
    guard case .calls(.call(let id, .accept)) = step.request, step.isOK, let asker = step.asker else { return }
    answers[id, default: [:]][asker.user, default: []].insert(asker)
    verdict.require(.oneDeviceAnswers, answers[id]?[asker.user]?.count == 1, "two devices answered one ring")
  }

  // MARK: the call

  /// Protocol section 7, and the end of the server.
  private func checkStart(_ step: WorldStep) {
    guard step.asker != nil, step.entry?.kind == .start,
      step.after.keys.contains(where: { step.before[$0] == nil })
    else { return }
    verdict.require(.roleMayStart, !step.roles.contains("guest"), "somebody started a call whose role may not")
    verdict.require(.drainingStartsNothing, !step.isDraining, "a call was started while the server drains")
  }

  /// A user not named by the app's back end is not rung (protocol section 7).
  private func checkReach(_ step: WorldStep) {
    guard let allowed = step.allowed, let asker = step.asker?.user else { return }
    for id in step.changed {
      let rung = step.after[id]?.rings.keys.filter { step.before[id]?.rings[$0] == nil } ?? []
      verdict.require(
        .onlyAllowedAreRung, rung.allSatisfy { allowed.contains($0) || $0 == asker },
        "somebody rings whom the back end did not name")
    }
  }

  private func checkCounts(_ call: Call, _ step: WorldStep) {
    verdict.require(
      .countsAreRight,
      call.ringingCount == call.members.count(where: \.isRinging)
        && call.presentCount == call.members.count(where: \.isPresent)
        && call.joinedCount == call.members.count(where: \.isJoined), "a count of members is wrong")
    verdict.require(.settles, call.presentCount > 0 || call.awaitsFirst, "nobody is in a call that continues")
    verdict.require(.settles, step.node.control.timers.count(of: call.id) > 0, "a call has no timer")
  }

  /// All but one of the calls that a device is in are held.
  func checkHolds(_ member: Member, _ node: Node) {
    guard member.isJoined else { return }
    for participant in member.participants where !participant.isHeld {
      let unheld = node.people.calls(of: member.user).count { id in
        (try? node.control.calls[id]?.participant(of: participant.device))?.isHeld == false
      }
      verdict.require(.oneCallIsHeard, unheld == 1, "a device speaks in \(unheld) calls")
    }
  }

  private func checkEnds(_ step: WorldStep) {
    if case .calls(.call(let id, .end)) = step.request, let old = step.before[id], !step.isService {
      // An initiator that could not be rung for a service, or that was forgotten since, is not a member: for it there
      // is no such call.
      let mayEnd = step.asker?.user == old.initiator && old.members[old.initiator] != nil
      verdict.require(
        .onlyInitiatorEnds, step.isOK == mayEnd,
        "end by \(step.asker?.user.text ?? "nobody") \(mayEnd ? "is an error" : "is no error")")
      verdict.require(.onlyInitiatorEnds, mayEnd == (step.after[id] == nil), "end by somebody else ends the call")
    }
    for case .client(.event(_, let delivery)) in step.effects
    where !delivery.redelivered && delivery.message.at == step.now {
      guard case .ended(let ended) = delivery.message.body, let id = delivery.message.call, let old = step.before[id]
      else { continue }
      let isEnd = if case .calls(.call(id, .end)) = step.request { true } else { false }
      if ended.reason == .endedByInitiator {
        verdict.require(
          .onlyInitiatorEnds, isEnd && !step.isService && step.asker?.user == old.initiator,
          "a call was ended by its initiator, who did not")
      }
      if ended.reason == .endedByService {
        verdict.require(
          .onlyInitiatorEnds, isEnd && step.isService && ended.by == nil, "a call was ended by a service that did not")
      }
    }
    for id in step.gone {
      verdict.require(.noTimerIsLeft, step.node.control.timers.count(of: id) == 0, "a timer is left after the end")
      verdict.require(
        .nothingIsLeft,
        !step.isWhole || !step.node.people.memberships.values.contains { $0.contains { $0.call == id } },
        "a member is left after the end")
    }
    verdict.require(
      .noTimerIsLeft, !step.isWhole || step.node.nextDeadline.map { $0 > step.now } ?? true,
      "a timer that is due was left")
  }
}

extension MemberState {
  /// The state without tracks.
  var withoutTracks: MemberState {
    var state = self
    for place in state.participants.indices { state.participants[place].tracks = [] }
    return state
  }
}

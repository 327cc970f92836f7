import CallMessages
import Contract
import MediaModel

/// Calls that cross (protocol section 4): two calls of the same people, or two in which two people ring each other.
extension Call {
  /// The user is rung, joined or disconnected here, and all other members are among the callees, so no callee who could be rung is
  /// missing.
  func isMeant(by user: UserID, calling callees: [Callee]) -> Bool {
    guard member(user)?.isListening == true, (2...callees.count + 1).contains(members.count) else { return false }
    let present = callees.count { member($0.user) != nil }
    return present == members.count - 1 && callees.allSatisfy { member($0.user) != nil || !$0.isRingable(.ring) }
  }

  /// Somebody else may be reached here. While the call rings, only a caller with a connection can learn that it was
  /// answered.
  func isInhabited(besides user: UserID) -> Bool {
    if awaitsFirst { return true }
    return members.contains { member in
      guard member.user != user, member.isJoined else { return false }
      return member.participants.contains { isActive ? $0.goneSince == nil : $0.isSignaling }
    }
  }

  /// Somebody may be about to join by a link.
  func isOpen(now: Timestamp) -> Bool { links.map { $0.validUntil > now } ?? false }

  /// The user has started a call of the same people.
  mutating func giveWay(to user: UserID, now: Timestamp, out: inout Outputs) {
    end(isActive ? .allLeft : .cancelled, by: user, now: now, out: &out)
  }

  /// The user has answered a ring of another call: the people who have met there need not ring each other here.
  mutating func withdrawRings(of user: UserID, whoMeetIn other: Call, now: Timestamp, out: inout Outputs) {
    let isOfSame = members.count == other.members.count && members.allSatisfy { other.member($0.user) != nil }
    if !isActive, isOfSame, !isOpen(now: now) {
      return end(.cancelled, by: user, now: now, out: &out)
    }
    let met = ringsOf(user).filter { ringing, by in
      let one = ringing == user ? by : ringing
      return one != user && other.member(one)?.isJoined == true
    }
    guard !met.isEmpty else { return }
    cancelRings(of: met.map(\.ringing), by: user, out: &out)
    let isDeserted = members.allSatisfy { !$0.isPresent || other.member($0.user)?.isJoined == true }
    guard !isActive, ringingCount == 0, isDeserted else { return settle(now: now, out: &out) }
    end(.cancelled, by: user, now: now, out: &out)
  }

  /// The ring of the user, and those by the user.
  private func ringsOf(_ user: UserID) -> [(ringing: UserID, by: UserID)] {
    guard let own = member(user), own.isListening, ringingCount > 0 else { return [] }
    if case .ringing(let ringing) = own.phase { return [(user, ringing.by)] }
    return members.compactMap { member in
      guard case .ringing(let ringing) = member.phase, ringing.by == user else { return nil }
      return (member.user, user)
    }
  }
}

/// How a request affects the user's other calls.
enum Crossing {
  /// A `start` replaces these calls.
  case replaces([CallID])
  /// A ring was answered; these are the user's other calls.
  case answered([CallID])
}

extension CallControl {
  /// The calls that a `start` with these callees replaces.
  /// - Throws: `call.crossed` if it means a call that somebody is in.
  func callsToReplace(_ message: BriefedRequest) throws(RequestError) -> [CallID] {
    let user = message.caller.device.user
    guard !message.callees.isEmpty else { return [] }
    let same = message.caller.calls.filter { calls[$0]?.isMeant(by: user, calling: message.callees) == true }
    if let id = same.first(where: { calls[$0]?.isInhabited(besides: user) == true }) {
      throw RequestError(
        .callCrossed, "a call of the same people runs already: answer it, or come into it", call: id)
    }
    return same.filter { calls[$0]?.isOpen(now: now) == false }
  }

  mutating func carryOut(_ crossing: Crossing, by user: UserID, in id: CallID) {
    switch crossing {
    case .replaces(let others):
      for other in others { change(other) { call, now, out in call.giveWay(to: user, now: now, out: &out) } }
    case .answered(let others):
      guard let answered = calls[id] else { return }
      for other in others where other != id {
        change(other) { call, now, out in
          call.withdrawRings(of: user, whoMeetIn: answered, now: now, out: &out)
        }
      }
    }
  }
}

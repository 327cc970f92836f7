import CallMessages
import Contract
import MediaModel

/// Joining: `accept`, `join` and `rejoin` (rules 2, 12 and 13).
extension Call {
  /// The first participant, from `start`. Returns its number.
  mutating func seatInitiator(_ joiner: Joiner, now: Timestamp, out: inout Outputs) -> ParticipantNumber {
    let participant = Participant(number: nextNumber(), joiner: joiner, now: now)
    admit(participant, joiner, now: now, out: &out)
    return participant.number
  }

  /// The ring is answered on this device (rule 2). Returns the participant's number.
  mutating func accept(_ joiner: Joiner, now: Timestamp, out: inout Outputs) throws(RequestError) -> ParticipantNumber {
    guard member(joiner.device.user)?.isRinging == true else { throw notRinging(joiner.device) }
    try checkRoom()
    return enter(joiner, .accepted, now: now, out: &out)
  }

  /// `join`: without a ring, or in addition to one. A link also admits users who are not, or no longer, members.
  mutating func join(
    _ joiner: Joiner, byLink: Bool, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> ParticipantNumber {
    guard !byLink else { return try enterByLink(joiner, now: now, out: &out) }
    guard let member = member(joiner.device.user) else { throw .notFound }
    switch member.phase {
    case .cancelled: throw RequestError(.authForbidden, "the invitation to this call was taken back")
    case .ringing: return try accept(joiner, now: now, out: &out)
    case .joined(let old), .disconnected(let old): return try replace(old, by: joiner, in: member, now: now, out: &out)
    case .left, .declined, .missed:
      try checkRoom()
      return enter(joiner, .joined, now: now, out: &out)
    }
  }

  /// `rejoin`: a user who was in the call returns, always as a new participant (rule 12).
  mutating func rejoin(_ joiner: Joiner, now: Timestamp, out: inout Outputs) throws(RequestError) -> ParticipantNumber {
    guard let member = member(joiner.device.user) else { throw .notFound }
    guard member.hasBeenIn else {
      throw RequestError(.callNotJoined, "this user was not in the call: accept or join it")
    }
    switch member.phase {
    case .ringing: return try accept(joiner, now: now, out: &out)
    case .joined(let old), .disconnected(let old): return try replace(old, by: joiner, in: member, now: now, out: &out)
    case .left, .declined, .missed, .cancelled:
      try checkRoom()
      return enter(joiner, .rejoined, now: now, out: &out)
    }
  }

  private mutating func enterByLink(
    _ joiner: Joiner, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> ParticipantNumber {
    try checkRoom()
    guard member(joiner.device.user) != nil || members.count < limits.members else {
      throw RequestError(.callFull, "the call has \(limits.members) members, those who left counted")
    }
    if joiner.device.user.isGuest, member(joiner.device.user) == nil {
      guard members.count(where: \.user.isGuest) < limits.guests else {
        throw RequestError(.callFull, "the call has \(limits.guests) guests, those who left counted")
      }
    }
    // From now on it is no longer a call for only one callee (rule 9).
    if soleCallee != joiner.device.user { soleCallee = nil }
    var joiner = joiner
    joiner.hasLink = true
    return enter(joiner, .joined, now: now, out: &out)
  }

  private func checkRoom() throws(RequestError) {
    guard joinedCount < limits.participants else {
      throw RequestError(.callFull, "the call has \(limits.participants) participants")
    }
  }

  private mutating func enter(
    _ joiner: Joiner, _ cause: MemberCause, now: Timestamp, out: inout Outputs
  ) -> ParticipantNumber {
    let user = joiner.device.user
    if cause == .accepted {
      endRing(
        of: user, .left, event: .answeredElsewhere(By(by: user)), actor: joiner.device.device, out: &out)
    }
    let participant = Participant(number: nextNumber(), joiner: joiner, now: now)
    admit(participant, joiner, now: now, out: &out)
    announce(user, cause, out: &out)
    if let keyedDevice = keyedDevice(participant, joiner) { epochs.join(keyedDevice, now: now, out: &out) }
    settle(now: now, out: &out)
    return participant.number
  }

  /// A user has one participant in a call: the user's old participant, or a disconnected one, is replaced (rules 12 and
  /// 13).
  private mutating func replace(
    _ old: Participant, by joiner: Joiner, in member: Member, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> ParticipantNumber {
    if member.arriving?.device == joiner.device { return arrive(joiner, .rejoined, in: member, now: now, out: &out) }
    guard !member.isJoined || old.device == joiner.device else {
      throw RequestError(.callAnsweredElsewhere, "another device of this user is in the call")
    }
    if !member.isJoined { try checkRoom() }
    let user = member.user
    // The old participant no longer learns about its tracks.
    let tracks = remove(old, out: &out)
    let participant = Participant(number: nextNumber(), joiner: joiner, now: now)
    admit(participant, joiner, now: now, out: &out)
    tellGone(tracks, out: &out)
    announce(user, .rejoined, out: &out)
    epochs.replace(old.device, by: keyedDevice(participant, joiner), now: now, out: &out)
    settle(now: now, out: &out)
    return participant.number
  }

  private mutating func admit(_ participant: Participant, _ joiner: Joiner, now: Timestamp, out: inout Outputs) {
    let user = joiner.device.user
    setPhase(.joined(participant), of: user, name: joiner.name, out: &out)
    if joiner.hasLink { letInByLink(user) }
    if let word = joiner.word { epochs.admissions.admit(word, by: joiner.signer) }
    if knocks.remove(user) != nil { out.cancel(.knock(user)) }
    remember(participant)
    out.add(.peerAdded(joiner.peer, user))
    if let limit = rules.connectTime { out.set(.connect(joiner.device), at: now + limit) }
    if case .ringing = phase, user != initiator { phase = .active(since: now) }
    tellKnocks(to: joiner.device, out: &out)
  }

  /// A joinId or join key belongs to one join only. Clients refuse a list with a repetition, so a device that copied one could stop the call's
  /// keys.
  func checkIsNew(_ joiner: Joiner) throws(RequestError) {
    guard !numbers.contains(joiner.joinId) else {
      throw RequestError(.requestInvalid, "a new joinId is needed for each stay in a call", field: "joinId")
    }
    guard let key = joiner.joinKey?.publicKey else { return }
    guard !epochs.keyedDevices.values.contains(where: { $0.joinKey.publicKey == key }) else {
      throw RequestError(.requestInvalid, "a new joinKey is needed for each stay in a call", field: "joinKey")
    }
  }

  func keyedDevice(_ participant: Participant, _ joiner: Joiner) -> KeyedDevice? {
    joiner.keyedDevice(number: participant.number)
  }
}

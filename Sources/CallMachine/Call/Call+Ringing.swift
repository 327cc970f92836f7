import CallMessages
import Contract
import MediaModel

/// Rings: from `start` or `invite` to exactly one of accepted, declined, missed, cancelled.
extension Call {
  /// Rings those of `callees` that can be rung (rules 6 and 17).
  /// - Parameters:
  ///   - words: nil for a service, which lets people in without words.
  ///   - isStart: the members are in the reply and in the rings, so they need not be announced one by one.
  /// - Throws: `call.full` over 100 ringing, or too many members, `request.invalid` for a bad word. No callee is rung then.
  mutating func ring(
    _ callees: [Callee], by user: UserID, words: OfferedWords?, metadata: Base64Bytes?, isStart: Bool, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) -> [UserID: RingResult] {
    var results: [UserID: RingResult] = [:]
    var rung: [Callee] = []
    for callee in callees {
      let result = self.result(for: callee)
      results[callee.user] = result
      if result == .ringing || (result == .offline && callee.isReachable) { rung.append(callee) }
    }
    let newcomers = rung.count { member($0.user) == nil }
    let missing = callees.filter { isSilenced($0, results[$0.user]) }
    guard ringingCount + rung.count <= limits.ringing,
      members.count + newcomers + silenced.names.count + missing.count <= limits.members
    else {
      throw RequestError(.callFull, "at most \(limits.ringing) people ring at once in a call")
    }
    var admitted: [Admission] = []
    for callee in rung { if let word = try words?.word(for: callee.user) { admitted.append(word) } }
    for word in admitted { epochs.admissions.admit(word, by: words?.signer) }
    for callee in missing { silenced.add(callee.user, name: callee.name) }
    journal.silenced.formUnion(missing.map(\.user))
    let expiresAt = now + rules.ringTime
    for callee in rung {
      let ringing = Member.Ringing(
        by: user, expiresAt: expiresAt, waiting: callee.isBusy, metadata: metadata ?? self.metadata)
      setPhase(.ringing(ringing), of: callee.user, name: callee.name, out: &out)
      out.set(.ring(callee.user), at: expiresAt)
      if let sole = soleCallee, sole != callee.user, callee.user != initiator { soleCallee = nil }
    }
    out.add(.ring(rung.map(\.user)))
    if !isStart { for callee in rung { announce(callee.user, .invited, out: &out) } }
    return results
  }

  /// Whether a callee who is not rung learns of the call only from the history. A member already knows its part in it.
  private func isSilenced(_ callee: Callee, _ result: RingResult?) -> Bool {
    (result == .unavailable || result == .busy) && member(callee.user) == nil && silenced.names[callee.user] == nil
  }

  private func result(for callee: Callee) -> RingResult {
    if let member = member(callee.user) {
      if member.isPresent { return .alreadyJoined }
      if member.isRinging { return .alreadyRinging }
    }
    guard callee.isReachable else { return .offline }
    guard callee.hasKeys else { return .noKeys }
    if callee.isUnavailable { return .unavailable }
    if callee.isBusy, rules.whenBusy == .reject { return .busy }
    return callee.isConnected ? .ringing : .offline
  }

  /// `invite`, by a joined member (rule 5).
  mutating func invite(
    _ callees: [Callee], by user: UserID, words: OfferedWords, metadata: Base64Bytes?, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) -> [UserID: RingResult] {
    let results = try ring(
      callees, by: user, words: words, metadata: metadata, isStart: false, now: now, out: &out)
    settle(now: now, out: &out)
    return results
  }

  /// `decline`: for all devices of the user (rule 3).
  mutating func decline(_ device: Device, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard let member = member(device.user), member.isRinging else { throw notRinging(device) }
    endRing(
      of: device.user, .declined, event: .declinedElsewhere(By(by: device.user)), actor: device.device, out: &out)
    announce(device.user, .declined, out: &out)
    settle(now: now, out: &out)
  }

  /// `cancel`, by the user who rang them or by the initiator; nil: everyone whose ring this user may stop.
  mutating func cancel(_ callees: [UserID]?, by user: UserID, now: Timestamp, out: inout Outputs) throws(RequestError) {
    func mayStop(_ member: Member) -> Bool {
      guard case .ringing(let ringing) = member.phase else { return false }
      return user == initiator || ringing.by == user
    }
    let stopped: [UserID]
    if let callees {
      let named = Set(callees)
      let ringing = members.filter { named.contains($0.user) && $0.isRinging }
      guard ringing.allSatisfy(mayStop) else {
        throw RequestError(.callNotInitiator, "only who rang them, or the initiator, may stop the ringing")
      }
      stopped = ringing.map(\.user)
    } else {
      stopped = members.filter(mayStop).map(\.user)
    }
    guard !stopped.isEmpty else { throw RequestError(.callNotRinging, "none of these is ringing") }
    cancelRings(of: stopped, by: user, out: &out)
    settle(now: now, out: &out)
  }

  mutating func cancelRings(of users: [UserID], by user: UserID?, out: inout Outputs) {
    for callee in users { endRing(of: callee, .cancelled, event: .cancelled(By(by: user)), actor: nil, out: &out) }
    for callee in users { announce(callee, .cancelled, out: &out) }
  }

  /// The ring's time has expired (rule 4).
  mutating func ringTimedOut(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard member(user)?.isRinging == true else { return }
    endRing(of: user, .missed, event: .missed(By()), actor: nil, out: &out)
    announce(user, .missed, out: &out)
    settle(now: now, out: &out)
  }

  /// Ends a ring: the devices that were rung are told, except the one that acted.
  mutating func endRing(
    of user: UserID, _ phase: Member.Phase, event: EventBody, actor: DeviceID?, out: inout Outputs
  ) {
    if case .ringing(let ringing)? = member(user)?.phase, ringing.isPushed { out.tell(.pushOver(user)) }
    setPhase(phase, of: user, out: &out)
    out.cancel(.ring(user))
    epochs.forgetRingEnvelopes { $0.user == user }
    out.event(event, to: .rung(user, but: actor))
  }

  /// Why a member that is not ringing cannot accept or decline.
  func notRinging(_ device: Device) -> RequestError {
    if let member = member(device.user), member.isPresent, member.participant(on: device) == nil {
      return RequestError(.callAnsweredElsewhere, "another device of this user has answered")
    }
    return RequestError(.callNotRinging, "the call does not ring here: join it instead")
  }
}

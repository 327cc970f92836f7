import Contract
import MediaModel

/// Going, and what it does to the call (rules 8 to 10).
extension Call {
  /// `leave`: this device's participant goes.
  mutating func leave(_ device: Device, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard let participant = member(device.user)?.participant, participant.device == device else {
      throw RequestError(.callNotJoined, "this device is not in the call")
    }
    go(device.user, participant, .left, now: now, out: &out)
  }

  /// `end`, for the initiator alone (rule 7 knows no other).
  mutating func end(by user: UserID, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard user == initiator else {
      throw RequestError(.callNotInitiator, "only the initiator may end the call for all: leave it instead")
    }
    end(.endedByInitiator, by: user, now: now, out: &out)
  }

  mutating func handleTimeout(_ timer: CallTimer, now: Timestamp, out: inout Outputs) {
    switch timer {
    case .ring(let user): ringTimedOut(user, now: now, out: &out)
    case .disconnect(let user): becomeDisconnected(user, now: now, out: &out)
    case .away(let user):
      guard case .disconnected(let participant)? = member(user)?.phase else { return }
      go(user, participant, .left, now: now, out: &out)
    case .connect(let user):
      guard case .joined(let participant)? = member(user)?.phase, case .never = participant.media else { return }
      go(user, participant, .failed, now: now, out: &out)
    case .alone:
      isAlone = false
      end(reasonOfDesertion, by: nil, now: now, out: &out)
    case .expiry: end(.expired, by: nil, now: now, out: &out)
    case .batch, .leader, .spread, .rotate: epochs.handleTimeout(timer, now: now, out: &out)
    }
  }

  /// The member is `left`.
  private mutating func go(
    _ user: UserID, _ participant: Participant, _ cause: MemberCause, now: Timestamp, out: inout Outputs
  ) {
    let tracks = remove(participant, out: &out)
    setPhase(.left, of: user, out: &out)
    for track in tracks { out.event(.trackRemoved(TrackChange(track.state)), to: .devices(participantDevices)) }
    announce(user, cause, out: &out)
    if user == initiator, case .ringing = phase { cancelAllRings(by: user, out: &out) }
    epochs.leave(participant.device, now: now, out: &out)
    settle(now: now, out: &out)
  }

  /// Both signaling and media were gone too long (rule 10): it may `rejoin`, but is off the list of keys.
  private mutating func becomeDisconnected(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard case .joined(var participant)? = member(user)?.phase, participant.goneSince != nil else { return }
    let tracks = remove(participant, out: &out)
    _ = participant.tracks.endAll()
    setPhase(.disconnected(participant), of: user, out: &out)
    for track in tracks { out.event(.trackRemoved(TrackChange(track.state)), to: .devices(participantDevices)) }
    announce(user, .disconnected, out: &out)
    out.set(.away(user), at: now + rules.awayTime)
    if user == initiator, case .ringing = phase { cancelAllRings(by: user, out: &out) }
    epochs.leave(participant.device, now: now, out: &out)
    settle(now: now, out: &out)
  }

  /// Takes a participant's media away, and its timers. Returns the tracks that ended.
  mutating func remove(_ participant: Participant, out: inout Outputs) -> [TrackTable.Track] {
    let user = participant.device.user
    for timer in [CallTimer.disconnect(user), .away(user), .connect(user)] { out.cancel(timer) }
    out.add(.peerGone(participant.peer))
    out.add(.participantGone(participant.device))
    return participant.tracks.live
  }

  private mutating func cancelAllRings(by user: UserID, out: inout Outputs) {
    cancelRings(of: members.filter(\.isRinging).map(\.user), by: user, out: &out)
  }

  // MARK: the end

  /// Whether anybody is there still (rule 9). To be called at the end of each transition that moves a member.
  mutating func settle(now: Timestamp, out: inout Outputs) {
    guard !isEnded else { return }
    guard presentCount > 0 else { return end(reasonOfDesertion, by: nil, now: now, out: &out) }
    guard presentCount == 1, ringingCount == 0 else {
      if isAlone { out.cancel(.alone) }
      isAlone = false
      return
    }
    let patience = rules.aloneTime ?? (soleCallee == nil ? .seconds(120) : .zero)
    guard patience > .zero else { return end(reasonOfDesertion, by: nil, now: now, out: &out) }
    if !isAlone { out.set(.alone, at: now + patience) }
    isAlone = true
  }

  private var reasonOfDesertion: EndReason {
    guard case .ringing = phase else { return .allLeft }
    let callees = members.filter { $0.user != initiator }
    func any(_ matches: (Member.Phase) -> Bool) -> Bool { callees.contains { matches($0.phase) } }
    if !callees.isEmpty, !any({ if case .declined = $0 { false } else { true } }) { return .declined }
    return any({ if case .missed = $0 { true } else { false } }) ? .noAnswer : .cancelled
  }

  private mutating func end(_ reason: EndReason, by user: UserID?, now: Timestamp, out: inout Outputs) {
    var seconds = 0
    if case .active(let since) = phase { seconds = Int((now.milliseconds - since.milliseconds) / 1_000) }
    for member in members {
      switch member.phase {
      case .ringing:
        endRing(of: member.user, .cancelled, event: .cancelled(By(by: user)), actor: nil, out: &out)
      case .joined(let participant), .disconnected(let participant):
        _ = remove(participant, out: &out)
        setPhase(.left, of: member.user, out: &out)
      case .left, .declined, .missed, .cancelled: break
      }
    }
    phase = .ended
    endReason = reason
    out.event(.ended(Ended(reason: reason, by: user, seconds: seconds)), to: .users(members.map(\.user)))
    out.add(.ended)
  }
}

import CallMessages
import Contract
import MediaModel

/// Leaving, and its effects on the call (rules 8 to 10).
extension Call {
  /// `leave`: this device's participant leaves.
  mutating func leave(_ device: Device, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard member(device.user)?.participant(on: device) != nil else {
      throw RequestError(.callNotJoined, "this device is not in the call")
    }
    go(device, .left, now: now, out: &out)
  }

  /// The device was removed.
  mutating func remove(_ device: Device, now: Timestamp, out: inout Outputs) {
    epochs.forgetRingEnvelopes { $0 == device }
    go(device, .left, now: now, out: &out)
  }

  /// `end`: for the initiator only (rule 7).
  mutating func end(by user: UserID, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard user == initiator else {
      throw RequestError(.callNotInitiator, "only the initiator may end the call for all: leave it instead")
    }
    end(.endedByInitiator, by: user, now: now, out: &out)
  }

  /// A service (protocol section 11) and the operator may end any call.
  mutating func endFromOutside(_ reason: EndReason, now: Timestamp, out: inout Outputs) {
    end(reason, by: nil, now: now, out: &out)
  }

  /// The user is forgotten, so its part in the call ends.
  mutating func dismiss(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard let member = member(user) else { return }
    // During a transfer the first `go` removes only its own participant.
    for participant in member.participants { go(participant.device, .left, now: now, out: &out) }
    guard member.isRinging else { return }
    cancelRings(of: [user], by: nil, out: &out)
    settle(now: now, out: &out)
  }

  mutating func handleTimeout(_ timer: CallTimer, now: Timestamp, out: inout Outputs) {
    switch timer {
    case .ring(let user): ringTimedOut(user, now: now, out: &out)
    case .disconnect(let device): becomeDisconnected(device, now: now, out: &out)
    case .away(let user):
      guard case .disconnected(let participant)? = member(user)?.phase else { return }
      go(participant.device, .left, now: now, out: &out)
    case .connect(let device):
      guard let participant = try? participant(of: device), case .never = participant.media else { return }
      go(device, .failed, now: now, out: &out)
    case .alone:
      lastSeen.aloneSince = nil
      end(reasonOfDesertion, by: nil, now: now, out: &out)
    case .expiry: end(.expired, by: nil, now: now, out: &out)
    case .members: out.add(.changesDue(listeners))
    case .knock(let user): knockTimedOut(user, now: now, out: &out)
    case .batch, .leader, .spread, .confirmed, .rotate: epochs.handleTimeout(timer, now: now, out: &out)
    }
  }

  /// The device's participant goes, and its member becomes `left`. While a transfer is under way the user's other
  /// participant stays.
  mutating func go(_ device: Device, _ cause: MemberCause, now: Timestamp, out: inout Outputs) {
    let user = device.user
    guard let member = member(user), let participant = member.participant(on: device) else { return }
    if let arriving = member.arriving {
      return arriving.device == device
        ? stopTransfer(of: user, now: now, out: &out) : finishTransfer(of: user, now: now, out: &out)
    }
    lastSeen.note(participant, start: startedAt, now: now)
    let tracks = remove(participant, out: &out)
    setPhase(.left, of: user, out: &out)
    tellGone(tracks, out: &out)
    announce(user, cause, out: &out)
    if user == initiator, case .ringing = phase { cancelAllRings(by: user, out: &out) }
    epochs.leave(participant.device, now: now, out: &out)
    settle(now: now, out: &out)
  }

  /// Both signaling and media were gone for too long (rule 10): it may `rejoin`, but is off the list of keys.
  private mutating func becomeDisconnected(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard var participant = try? participant(of: device), participant.goneSince != nil else { return }
    let user = device.user
    guard member(user)?.arriving == nil else { return go(device, .failed, now: now, out: &out) }
    lastSeen.note(participant, start: startedAt, now: now)
    let tracks = remove(participant, out: &out)
    _ = participant.tracks.endAll()
    setPhase(.disconnected(participant), of: user, out: &out)
    tellGone(tracks, out: &out)
    announce(user, .disconnected, out: &out)
    out.set(.away(user), at: now + rules.awayTime)
    if user == initiator, case .ringing = phase { cancelAllRings(by: user, out: &out) }
    epochs.leave(participant.device, now: now, out: &out)
    settle(now: now, out: &out)
  }

  /// Removes a participant's media and timers. Returns the tracks that ended.
  mutating func remove(_ participant: Participant, out: inout Outputs) -> [TrackTable.Track] {
    let device = participant.device
    let key = epochs.keyState(of: device)
    if key != .present, key != .none { out.add(.keyless(participant.number, key)) }
    for timer in [CallTimer.disconnect(device), .away(device.user), .connect(device)] { out.cancel(timer) }
    out.add(.peerGone(participant.peer))
    out.tell(.participantGone(device))
    forgetConsent(of: participant.number, out: &out)
    return participant.tracks.live
  }

  private mutating func cancelAllRings(by user: UserID, out: inout Outputs) {
    cancelRings(of: members.filter(\.isRinging).map(\.user), by: user, out: &out)
  }

  // MARK: the end

  /// Ends a call without present members, and sets the timer of a member who is alone (rule 9). Must be called at the end of each transition that moves a
  /// member.
  mutating func settle(now: Timestamp, out: inout Outputs) {
    guard !isEnded else { return }
    settleRecording(now: now, out: &out)
    guard presentCount > 0 || canBegin else { return end(reasonOfDesertion, by: nil, now: now, out: &out) }
    guard presentCount == 1, ringingCount == 0 else {
      if lastSeen.aloneSince != nil { out.cancel(.alone) }
      lastSeen.aloneSince = nil
      return
    }
    let since = lastSeen.aloneSince ?? now
    let deadline = desertion(of: since)
    guard deadline > now else { return end(reasonOfDesertion, by: nil, now: now, out: &out) }
    out.set(.alone, at: deadline)
    lastSeen.aloneSince = since
  }

  /// When a call ends whose one member has been alone since the given time: a link keeps it for an hour, or until the
  /// link expires.
  func desertion(of since: Timestamp) -> Timestamp {
    let usual = since + patience
    guard rules.aloneTime == nil, let links else { return usual }
    return min(since + .seconds(3_600), max(links.validUntil, usual))
  }

  private var patience: Duration { rules.aloneTime ?? (soleCallee == nil ? .seconds(120) : .zero) }

  /// A service started the call, nobody has joined yet, and the first to join would not end it by being alone.
  private var canBegin: Bool {
    guard awaitsFirst else { return false }
    let isRefused = members.contains { if case .declined = $0.phase { true } else { false } }
    return ringingCount > 1 || patience > .zero || !isRefused
  }

  private var reasonOfDesertion: EndReason {
    guard case .ringing = phase else { return .allLeft }
    return refusal
  }

  /// Why nobody joined.
  var refusal: EndReason {
    // The initiator of a call that a service started was rung, too.
    let callees = members.filter { $0.user != initiator || !$0.hasBeenIn }
    func any(_ matches: (Member.Phase) -> Bool) -> Bool { callees.contains { matches($0.phase) } }
    if !callees.isEmpty, !any({ if case .declined = $0 { false } else { true } }) { return .declined }
    return any({ if case .missed = $0 { true } else { false } }) ? .noAnswer : .cancelled
  }

  /// How long there was somebody in the call, counted from the first join by somebody other than the initiator.
  private func talkSeconds(now: Timestamp) -> Int {
    guard case .active(let since) = phase else { return 0 }
    return lastSeen.seconds(since: since, with: members.flatMap(\.participants), now: now)
  }

  mutating func end(_ reason: EndReason, by user: UserID?, now: Timestamp, out: inout Outputs) {
    let seconds = talkSeconds(now: now)
    let wasActive = isActive
    endRecording(.callEnded, now: now, out: &out)
    out.add(.changesDue(listeners))
    phase = .ended(wasActive: wasActive)
    for member in members {
      switch member.phase {
      case .ringing:
        endRing(of: member.user, .cancelled, event: .cancelled(By(by: user)), actor: nil, out: &out)
      case .joined, .disconnected:
        for participant in member.participants { _ = remove(participant, out: &out) }
        setArriving(nil, of: member.user, out: &out)
        setPhase(.left, of: member.user, out: &out)
      case .left, .declined, .missed, .cancelled: break
      }
    }
    dismissKnocks(out: &out)
    let ended = Ended(reason: reason, by: user, seconds: seconds)
    out.event(.ended(ended), to: .users(members.map(\.user)))
    out.add(.ended(ended))
  }
}

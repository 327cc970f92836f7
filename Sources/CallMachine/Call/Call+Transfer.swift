import CallMessages
import Contract
import MediaModel

/// `transfer`: the call moves from one device of a user to another (rule 13). Meanwhile the member has two participants, and two devices on the list of keys.
extension Call {
  /// How long the new device has until media flows.
  static let transferTime = Duration.seconds(20)

  /// Returns the number of the participant on the new device. On the device that is already in the call it is a `rejoin`, and ends a transfer to
  /// another device.
  /// - Throws: `call.not-joined` if no device of the user is in the call, so there is nothing to move.
  mutating func transfer(_ joiner: Joiner, now: Timestamp, out: inout Outputs) throws(RequestError) -> ParticipantNumber
  {
    guard let member = member(joiner.device.user) else { throw .notFound }
    guard case .joined(let present) = member.phase else {
      throw RequestError(.callNotJoined, "no device of this user is in the call: join or rejoin it")
    }
    guard present.device != joiner.device else {
      stopTransfer(of: member.user, now: now, out: &out)
      return try rejoin(joiner, now: now, out: &out)
    }
    return arrive(joiner, .joined, in: member, now: now, out: &out)
  }

  /// The new device's participant begins. It replaces one that was already arriving.
  mutating func arrive(
    _ joiner: Joiner, _ cause: MemberCause, in member: Member, now: Timestamp, out: inout Outputs
  ) -> ParticipantNumber {
    let former = member.arriving
    let tracks = former.map { remove($0, out: &out) } ?? []
    let participant = Participant(number: nextNumber(), joiner: joiner, now: now)
    setArriving(participant, of: member.user, out: &out)
    remember(participant)
    out.add(.peerAdded(joiner.peer, member.user))
    out.set(.connect(joiner.device), at: now + min(Self.transferTime, rules.connectTime ?? Self.transferTime))
    tellGone(tracks, out: &out)
    announce(member.user, cause, out: &out)
    epochs.replace(former?.device ?? joiner.device, by: keyedDevice(participant, joiner), now: now, out: &out)
    settleRecording(now: now, out: &out)
    return participant.number
  }

  /// Media flows on the new device, or the old one is gone: the new device stays.
  mutating func finishTransfer(of user: UserID, now: Timestamp, out: inout Outputs) {
    guard let member = member(user), case .joined(let old) = member.phase, let new = member.arriving else { return }
    let tracks = remove(old, out: &out)
    setArriving(nil, of: user, out: &out)
    setPhase(.joined(new), of: user, out: &out)
    tellGone(tracks, out: &out)
    announce(user, .transferred, out: &out)
    epochs.leave(old.device, now: now, out: &out)
    settleRecording(now: now, out: &out)
  }

  /// The new device is gone, or no media arrived: the old device stays.
  mutating func stopTransfer(of user: UserID, now: Timestamp, out: inout Outputs) {
    guard let new = member(user)?.arriving else { return }
    let tracks = remove(new, out: &out)
    setArriving(nil, of: user, out: &out)
    tellGone(tracks, out: &out)
    announce(user, .failed, out: &out)
    epochs.leave(new.device, now: now, out: &out)
    settleRecording(now: now, out: &out)
  }

  func tellGone(_ tracks: [TrackTable.Track], out: inout Outputs) {
    guard !tracks.isEmpty else { return }
    let devices = participantDevices
    for track in tracks { out.event(.trackRemoved(TrackChange(track.state)), to: .devices(devices)) }
  }
}

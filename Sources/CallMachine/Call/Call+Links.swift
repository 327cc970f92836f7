import CallMessages
import Contract
import MediaModel

/// Signaling and media of participants coming and going (rule 10).
extension Call {
  /// The device's STOMP connection began or ended.
  mutating func signaling(of device: Device, isUp: Bool, now: Timestamp, out: inout Outputs) {
    guard let participant = member(device.user)?.participant(on: device), participant.isSignaling != isUp else {
      return
    }
    _ = withParticipant(of: device) { $0.signaling = isUp ? .up : .gone(since: now) }
    watch(device, out: &out)
    if isUp {
      epochs.connect(device, now: now, out: &out)
    } else {
      epochs.disconnect(device, now: now, out: &out)
    }
  }

  /// ICE and DTLS are up. A transfer is complete then.
  mutating func mediaConnected(_ peer: PeerID, of user: UserID, now: Timestamp, out: inout Outputs) {
    guard let participant = participant(with: peer, of: user) else { return }
    out.cancel(.connect(participant.device))
    if member(user)?.arriving?.peer == peer {
      _ = withParticipant(of: participant.device) { $0.media = .up(since: now) }
      watch(participant.device, out: &out)
      return finishTransfer(of: user, now: now, out: &out)
    }
    // Media that never went has been there since it came.
    guard !participant.isConnected else { return }
    setMedia(.up(since: now), of: participant, cause: .connected, out: &out)
  }

  /// Nothing has been heard since `lastHeard`.
  mutating func mediaLost(_ peer: PeerID, of user: UserID, lastHeard: Timestamp, out: inout Outputs) {
    guard let participant = participant(with: peer, of: user), participant.isConnected else { return }
    setMedia(.gone(since: lastHeard), of: participant, cause: .disconnected, out: &out)
  }

  /// The joined participant with this peer.
  func participant(with peer: PeerID, of user: UserID) -> Participant? {
    guard let member = member(user), member.isJoined else { return nil }
    return member.participants.first { $0.peer == peer }
  }

  private mutating func setMedia(
    _ link: Participant.MediaState, of participant: Participant, cause: MemberCause, out: inout Outputs
  ) {
    let isConnected = withParticipant(of: participant.device) { participant in
      participant.media = link
      return participant.isConnected
    }
    if isConnected != participant.isConnected { announce(participant.device.user, cause, out: &out) }
    watch(participant.device, out: &out)
  }

  /// Starts or stops the 15 s timer.
  private func watch(_ device: Device, out: inout Outputs) {
    guard let participant = try? participant(of: device) else { return }
    if let since = participant.goneSince {
      out.set(.disconnect(device), at: since + limits.disconnectTime)
    } else {
      out.cancel(.disconnect(device))
    }
  }
}

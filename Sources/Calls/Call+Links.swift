import Contract
import MediaModel

/// Signaling and media of participants coming and going (rule 10).
extension Call {
  /// The device's STOMP connection began or ended.
  mutating func signaling(of device: Device, isUp: Bool, now: Timestamp, out: inout Outputs) {
    guard member(device.user)?.participant?.device == device else { return }
    _ = withParticipant(of: device.user) { $0.signaling = isUp ? .up : .gone(since: now) }
    watch(device.user, now: now, out: &out)
    if isUp {
      epochs.connect(device, now: now, out: &out)
    } else {
      epochs.disconnect(device, now: now, out: &out)
    }
  }

  /// ICE and DTLS are up.
  mutating func mediaConnected(_ peer: PeerID, of user: UserID, now: Timestamp, out: inout Outputs) {
    setMedia(.up, peer, of: user, cause: .connected, now: now, out: &out)
    out.cancel(.connect(user))
  }

  /// Nothing was heard since `lastHeard`.
  mutating func mediaLost(
    _ peer: PeerID, of user: UserID, lastHeard: Timestamp, now: Timestamp, out: inout Outputs
  ) {
    guard member(user)?.participant?.isConnected == true else { return }
    setMedia(.gone(since: lastHeard), peer, of: user, cause: .disconnected, now: now, out: &out)
  }

  private mutating func setMedia(
    _ link: Participant.MediaLink, _ peer: PeerID, of user: UserID, cause: MemberCause, now: Timestamp,
    out: inout Outputs
  ) {
    guard case .joined(let participant)? = member(user)?.phase, participant.peer == peer else { return }
    let wasConnected = participant.isConnected
    let isConnected = withParticipant(of: user) { participant in
      participant.media = link
      return participant.isConnected
    }
    if isConnected != wasConnected { announce(user, cause, out: &out) }
    watch(user, now: now, out: &out)
  }

  /// Sets or stops the timer of the 15 s.
  private func watch(_ user: UserID, now: Timestamp, out: inout Outputs) {
    guard case .joined(let participant)? = member(user)?.phase else { return }
    if let since = participant.goneSince {
      out.set(.disconnect(user), at: since + limits.disconnectTime)
    } else {
      out.cancel(.disconnect(user))
    }
  }
}

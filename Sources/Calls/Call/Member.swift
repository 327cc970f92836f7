import Contract
import MediaModel

/// A user's part in a call.
struct Member {
  enum Phase {
    case ringing(Ringing)
    case joined(Participant)
    /// Both signaling and media went; it may come back by `rejoin` (rule 10).
    case disconnected(Participant)
    case left, declined, missed, cancelled
  }

  /// One ring, from its start to exactly one of accepted, declined, missed, cancelled.
  struct Ringing {
    var by: UserID
    var expiresAt: Timestamp
    /// The user was in a call, or ringing, already (rule 6).
    var waiting: Bool
    var metadata: Base64Bytes?
    /// `push.ring` told the app's back end of it.
    var isPushed = false
  }

  let user: UserID
  var name: String?
  var phase: Phase
  /// Was a participant once: such a user may `rejoin`.
  var hasBeenIn = false
  /// Came in by a link.
  var cameByLink = false
  /// On the device to which a joined user transfers the call; it takes the participant's place once media flows (rule 13).
  var arriving: Participant?

  /// The device that is, or was until it became disconnected, in the call; in a transfer the one it comes from.
  var participant: Participant? {
    switch phase {
    case .joined(let participant), .disconnected(let participant): participant
    case .ringing, .left, .declined, .missed, .cancelled: nil
    }
  }

  /// All of them: two while a transfer is under way.
  var participants: [Participant] { [participant, arriving].compactMap { $0 } }

  func participant(on device: Device) -> Participant? {
    if let participant, participant.device == device { return participant }
    return arriving?.device == device ? arriving : nil
  }

  var isJoined: Bool { if case .joined = phase { true } else { false } }
  var isRinging: Bool { if case .ringing = phase { true } else { false } }
  /// Joined or disconnected: the member counts as there (rules 9 and 10).
  var isPresent: Bool { participant != nil }
  /// Joined, ringing or disconnected: hears of other members.
  var isListening: Bool { isPresent || isRinging }

  var state: MemberState {
    let shown: MemberPhase =
      switch phase {
      case .ringing: .ringing
      case .joined: .joined
      case .disconnected: .disconnected
      case .left: .left
      case .declined: .declined
      case .missed: .missed
      case .cancelled: .cancelled
      }
    return MemberState(
      user: user, name: name, state: shown, participants: participants.map(\.state),
      link: cameByLink ? true : nil)
  }
}

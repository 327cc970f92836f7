import CallMessages
import Contract
import MediaModel

/// A user's part in a call.
struct Member {
  enum Phase {
    case ringing(Ringing)
    case joined(Participant)
    /// Both signaling and media are gone; it may return by `rejoin` (rule 10).
    case disconnected(Participant)
    case left, declined, missed, cancelled
  }

  /// One ring, from its start to exactly one of accepted, declined, missed, cancelled.
  struct Ringing {
    var by: UserID
    var expiresAt: Timestamp
    /// The user was already in a call, or ringing (rule 6).
    var waiting: Bool
    var metadata: Base64Bytes?
    /// `push.ring` announced it to the app's back end.
    var isPushed = false
  }

  let user: UserID
  var name: String?
  var phase: Phase
  /// It was a participant once, so the user may `rejoin`.
  var hasBeenIn = false
  /// It joined by a link.
  var cameByLink = false
  /// The participant on the device to which a joined user transfers the call; it replaces the participant once media flows
  /// (rule 13).
  var arriving: Participant?

  /// The device that is in the call, or was until it became disconnected; during a transfer the old device.
  var participant: Participant? {
    switch phase {
    case .joined(let participant), .disconnected(let participant): participant
    case .ringing, .left, .declined, .missed, .cancelled: nil
    }
  }

  /// All of them: two during a transfer.
  var participants: [Participant] { [participant, arriving].compactMap { $0 } }

  func participant(on device: Device) -> Participant? {
    if let participant, participant.device == device { return participant }
    return arriving?.device == device ? arriving : nil
  }

  /// Changes the joined participant on the device in place; nil if there is none.
  mutating func change<Result>(_ device: Device, _ change: (inout Participant) -> Result) -> Result? {
    guard case .joined(var participant) = phase else { return nil }
    if var arriving, arriving.device == device {
      self.arriving = nil
      defer { self.arriving = arriving }
      return change(&arriving)
    }
    guard participant.device == device else { return nil }
    // Otherwise the copy in the phase would make every change of the tracks copy them.
    phase = .left
    defer { phase = .joined(participant) }
    return change(&participant)
  }

  var isJoined: Bool { if case .joined = phase { true } else { false } }
  var isRinging: Bool { if case .ringing = phase { true } else { false } }
  /// Joined or disconnected: the member counts as present (rules 9 and 10).
  var isPresent: Bool { participant != nil }
  /// Joined, ringing or disconnected: it is told about other members.
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

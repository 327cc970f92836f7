import CallMessages
import Contract
import MediaModel

/// The consequences of a call's transition, in order. `CallControl` carries them out.
struct Outputs {
  enum Item {
    case tell(CallNews)
    /// Ring all devices of these members.
    case ring([UserID])
    /// The call was created.
    case made
    /// A member of a large call changed.
    case changed(MemberChange)
    /// Changes of members have waited long enough: send them to these listeners.
    case changesDue([UserID])
    /// From here on the user is told about the others' changes, or no longer.
    case listens(UserID, Bool)
    /// The member is new, or its part changed; omitted for changes caused by the end of the call.
    case memberMoved(UserID)
    case peerAdded(PeerID, UserID)
    case peerGone(PeerID)
    case media(MediaCommand)
    case setTimer(CallTimer, Timestamp)
    case cancelTimer(CallTimer)
    /// The participant leaves without the newest key.
    case keyless(ParticipantNumber, KeyState)
    /// A participant's client has measured the call's quality.
    case measured(QualityNumbers)
    case recorded(CallRecordingChange)
    case ended(Ended)
  }

  private(set) var items: [Item] = []

  mutating func add(_ item: Item) { items.append(item) }

  mutating func append(_ other: Outputs) { items += other.items }

  mutating func tell(_ news: CallNews) { items.append(.tell(news)) }

  mutating func event(_ body: EventBody, to audience: CallNews.Audience) { items.append(.tell(.event(audience, body))) }

  mutating func set(_ timer: CallTimer, at due: Timestamp) { items.append(.setTimer(timer, due)) }

  mutating func cancel(_ timer: CallTimer) { items.append(.cancelTimer(timer)) }

  /// The users who were told about changes before this transition ended the call; nil if it does not end it.
  var formerListeners: [UserID]? {
    var leavers: [UserID] = []
    for item in items {
      switch item {
      case .listens(let user, false): leavers.append(user)
      case .changesDue(let listeners): return listeners + leavers
      default: break
      }
    }
    return nil
  }
}

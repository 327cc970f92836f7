import Contract
import MediaModel

/// The consequences of a call's transition, in order; `CallControl` carries it out.
struct Outputs {
  enum Item {
    case tell(CallNews)
    /// Ring all devices of these members.
    case ring([UserID])
    /// The call came into being.
    case made
    /// A member of a large call changed.
    case changed(MemberChange)
    /// Changes of members have waited long enough: these listeners are told.
    case changesDue([UserID])
    /// The user hears of the others' changes from here on, or no more.
    case listens(UserID, Bool)
    /// The member is a new one, or its part changed; omitted for changes that the end of the call makes.
    case memberMoved(UserID)
    case peerAdded(PeerID, UserID)
    case peerGone(PeerID)
    case media(MediaCommand)
    case setTimer(CallTimer, Timestamp)
    case cancelTimer(CallTimer)
    /// The participant goes without the newest key.
    case keyless(ParticipantNumber, KeyState)
    /// A participant's client has measured the call's quality.
    case measured(QualityNumbers)
    case ended(Ended)
  }

  private(set) var items: [Item] = []

  mutating func add(_ item: Item) { items.append(item) }

  mutating func append(_ other: Outputs) { items += other.items }

  mutating func tell(_ news: CallNews) { items.append(.tell(news)) }

  mutating func event(_ body: EventBody, to audience: CallNews.Audience) { items.append(.tell(.event(audience, body))) }

  mutating func set(_ timer: CallTimer, at due: Timestamp) { items.append(.setTimer(timer, due)) }

  mutating func cancel(_ timer: CallTimer) { items.append(.cancelTimer(timer)) }

  /// The users who heard of changes before this transition ended the call; nil when it does not end it.
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

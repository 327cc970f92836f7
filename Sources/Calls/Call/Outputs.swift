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
    /// The member is a new one, or its part changed; omitted for changes that the end of the call makes.
    case memberMoved(UserID)
    case peerAdded(PeerID, UserID)
    case peerGone(PeerID)
    case media(MediaCommand)
    case setTimer(CallTimer, Timestamp)
    case cancelTimer(CallTimer)
    case ended(Ended)
  }

  private(set) var items: [Item] = []

  mutating func add(_ item: Item) { items.append(item) }

  mutating func append(_ other: Outputs) { items += other.items }

  mutating func tell(_ news: CallNews) { items.append(.tell(news)) }

  mutating func event(_ body: EventBody, to audience: CallNews.Audience) { items.append(.tell(.event(audience, body))) }

  mutating func set(_ timer: CallTimer, at due: Timestamp) { items.append(.setTimer(timer, due)) }

  mutating func cancel(_ timer: CallTimer) { items.append(.cancelTimer(timer)) }
}

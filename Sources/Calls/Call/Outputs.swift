import Contract
import MediaModel

/// The effects of a call's transition, in order; `Calls` carries them out.
struct Outputs {
  enum Audience {
    case devices([Device])
    /// Every device of these users.
    case users([UserID])
    /// The user's devices that were rung, but the one that acted; their ring is over.
    case rung(UserID, but: DeviceID?)
  }

  enum Item {
    case event(Audience, EventBody)
    /// Ring all devices of these members.
    case ring([UserID])
    /// These devices' rings go on without their envelopes.
    case ringEnvelopesSuperseded([Device])
    /// Envelopes kept for these devices that are not of this epoch are superseded.
    case envelopesSuperseded([Device], by: UInt32)
    /// Events kept for this device as a participant are void.
    case participantGone(Device)
    /// The call came into being.
    case made
    case memberAdded(UserID)
    /// The member's phase changed; omitted for changes that the end of the call makes.
    case memberMoved(UserID)
    /// A ring that `push.ring` announced is over.
    case pushOver(UserID)
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

  mutating func event(_ body: EventBody, to audience: Audience) { items.append(.event(audience, body)) }

  mutating func set(_ timer: CallTimer, at due: Timestamp) { items.append(.setTimer(timer, due)) }

  mutating func cancel(_ timer: CallTimer) { items.append(.cancelTimer(timer)) }
}

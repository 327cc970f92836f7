package import Contract
import MediaModel

/// How long an event matters (protocol section 3): some are never kept, others become void with their ring, epoch or participant.
extension EventBody {
  /// Kept for a device that is away, or has not acknowledged. A fresh `call.state` begins each connection, so an old one is not.
  var isKept: Bool {
    switch self {
    case .speakers, .state, .quality, .confirmed, .pairing, .presence, .pushRing, .pushCancel, .report: false
    case .ring, .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .member, .members, .ended,
      .trackAdded, .trackUpdated, .trackRemoved, .rotate, .envelope, .switchKeys, .keyRequest, .keyWaiting,
      .devicesChanged,
      .slots, .need, .wanted, .message:
      true
    }
  }

  /// Sent to a device as a participant: not kept when it is none any more.
  var isForParticipants: Bool {
    switch self {
    case .trackAdded, .trackUpdated, .trackRemoved, .speakers, .rotate, .envelope, .switchKeys, .keyRequest,
      .keyWaiting, .confirmed, .slots, .need, .wanted, .state, .quality, .message:
      true
    case .ring, .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .member, .members, .ended, .devicesChanged,
      .pairing, .presence, .pushRing, .pushCancel, .report:
      false
    }
  }

  var isRing: Bool { if case .ring = self { true } else { false } }
  var isEnvelope: Bool { if case .envelope = self { true } else { false } }
  var isSlots: Bool { if case .slots = self { true } else { false } }

  /// Bytes of memory or wire that it takes, roughly.
  package var cost: Int {
    switch self {
    case .state(let state): 512 + 256 * state.members.count
    case .ring(let ring):
      512 + 256 * ring.members.count + 1_024 * (ring.list?.count ?? 0) + (ring.envelope?.ciphertext.bytes.count ?? 0)
        + (ring.metadata?.bytes.count ?? 0)
    case .envelope(let envelope): 512 + envelope.ciphertext.bytes.count + (envelope.signature?.bytes.count ?? 0)
    case .rotate(let rotate):
      512 + 1_024 * ((rotate.list?.count ?? 0) + (rotate.added?.count ?? 0) + (rotate.deliver?.count ?? 0))
        + 16 * (rotate.removed?.count ?? 0)
    case .wanted(let wanted): 256 + 64 * wanted.layers.count
    case .slots(let slots): 256 + 64 * slots.receive.count
    case .confirmed(let confirmed): 256 + 128 * confirmed.buckets.count
    case .pairing(let message): 256 + message.body.bytes.count
    case .message(let message): 256 + message.body.bytes.count
    case .pushRing(let push): 256 + 128 * push.devices.count
    case .report(let report): 256 + report.text.utf8.count
    case .member(let change): 256 + 512 * change.member.participants.count
    case .members(let changes): 256 + changes.members.reduce(0) { $0 + 256 + 512 * $1.member.participants.count }
    case .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .ended, .trackAdded, .trackUpdated,
      .trackRemoved, .speakers, .switchKeys, .keyRequest, .keyWaiting, .devicesChanged, .need, .quality, .presence,
      .pushCancel:
      256
    }
  }
}

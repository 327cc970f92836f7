package import Contract
import MediaModel

/// How long an event matters (protocol section 3): some are never kept, others become void with their ring, epoch or participant.
extension EventBody {
  /// Kept for a device that is away, or has not acknowledged it. A fresh `call.state` begins each connection, so an old one is
  /// not kept.
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

  /// Sent to a device as a participant: not kept once it is not a participant.
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

  /// The approximate number of bytes that it takes in memory or on the wire, at least as many as its JSON.
  package var cost: Int {
    switch self {
    case .state(let state): 1_024 + (state.metadata?.cost ?? 0) + state.members.cost
    case .ring(let ring):
      512 + ring.members.cost + (ring.list?.cost ?? 0) + (ring.envelope?.cost ?? 0) + (ring.metadata?.cost ?? 0)
        + (ring.admissions?.cost ?? 0) + (ring.signers?.cost ?? 0)
    case .envelope(let envelope): 256 + envelope.cost
    case .rotate(let rotate):
      512 + (rotate.list?.cost ?? 0) + (rotate.added?.cost ?? 0) + (rotate.deliver?.cost ?? 0)
        + 16 * (rotate.removed?.count ?? 0) + (rotate.admissions?.cost ?? 0) + (rotate.signers?.cost ?? 0)
    case .wanted(let wanted): 256 + 64 * wanted.layers.count
    case .slots(let slots): 256 + 64 * slots.receive.count
    case .confirmed(let confirmed): 256 + 128 * confirmed.buckets.count
    case .pairing(let message): 512 + message.body.cost
    case .message(let message): 256 + message.body.cost
    case .pushRing(let push): 512 + 192 * push.devices.count
    case .report(let report): 512 + 2 * report.text.utf8.count
    case .member(let change): 128 + change.member.cost
    case .members(let changes): 128 + changes.members.reduce(0) { $0 + 32 + $1.member.cost }
    case .keyRequest(let request): 256 + request.to.cost
    case .speakers(let speakers): 256 + 12 * speakers.participants.count
    case .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .ended, .trackAdded, .trackUpdated,
      .trackRemoved, .switchKeys, .keyWaiting, .devicesChanged, .need, .quality, .presence, .pushCancel:
      384
    }
  }
}

extension Base64Bytes {
  fileprivate var cost: Int { bytes.count * 4 / 3 + 8 }
}

extension Envelope {
  /// The ciphertext is sent under two names.
  fileprivate var cost: Int { 768 + 2 * ciphertext.cost + (signature?.cost ?? 0) }
}

extension MemberState {
  fileprivate var cost: Int {
    192 + user.text.utf8.count + 2 * (name?.utf8.count ?? 0)
      + participants.reduce(0) { $0 + 256 + 128 * $1.tracks.count }
  }
}

extension [MemberState] {
  fileprivate var cost: Int { reduce(0) { $0 + $1.cost } }
}

extension JoinKey {
  fileprivate var cost: Int { 160 + publicKey.cost + signature.cost }
}

extension ListEntry {
  fileprivate var cost: Int {
    72 + user.text.utf8.count + device.text.utf8.count + fingerprint.cost + (joinId == nil ? 0 : 48)
      + (joinKey?.cost ?? 0) + (refresh?.cost ?? 0)
      + (keys ?? []).reduce(0) { $0 + 96 + $1.publicKey.cost }
  }
}

extension [ListEntry] {
  fileprivate var cost: Int { reduce(0) { $0 + $1.cost } }
}

extension [Admission] {
  fileprivate var cost: Int {
    reduce(0) {
      $0 + 96 + ($1.user?.text.utf8.count ?? 0) + ($1.link?.cost ?? 0) + $1.fingerprint.cost + $1.signature.cost
    }
  }
}

extension [Signer] {
  fileprivate var cost: Int {
    reduce(0) { cost, signer in
      cost + 96 + signer.user.text.utf8.count + signer.device.text.utf8.count + signer.fingerprint.cost
        + signer.keys.reduce(0) { $0 + 96 + $1.publicKey.cost }
    }
  }
}

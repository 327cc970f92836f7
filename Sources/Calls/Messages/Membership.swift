import MediaModel

/// A user's place in a running call, as last reported by the call.
struct Membership {
  enum Phase: String, Hashable, Codable, Sendable {
    case ringing, joined, disconnected
    /// A member that is told nothing: it left, declined or missed the ring, or the ring was cancelled.
    case away
  }

  struct Part: Hashable, Codable, Sendable {
    var phase: Phase
    /// The devices of the member's participants, including a disconnected one; two during a transfer.
    var devices: [DeviceID]

    /// It is told about other members.
    var isListening: Bool { phase != .away }
    /// It counts as present (rules 9 and 10).
    var isPresent: Bool { phase == .joined || phase == .disconnected }
    /// In a call from the perspective of others; a member that is only disconnected is not (rules 6 and 10).
    var isBusy: Bool { phase == .joined || phase == .ringing }
  }

  let call: CallID
  var part: Part
}

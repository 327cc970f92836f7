package import MediaModel

/// A user's place in a running call, as last reported by the call.
package struct Membership {
  package enum Phase: String, Hashable, Codable, Sendable {
    case ringing, joined, disconnected
    /// A member that is told nothing: it left, declined or missed the ring, or the ring was cancelled.
    case away
  }

  package struct Part: Hashable, Codable, Sendable {
    package var phase: Phase
    /// The devices of the member's participants, including a disconnected one; two during a transfer.
    package var devices: [DeviceID]

    package init(phase: Phase, devices: [DeviceID]) {
      self.phase = phase
      self.devices = devices
    }

    /// It is told about other members.
    package var isListening: Bool { phase != .away }
    /// It counts as present (rules 9 and 10).
    package var isPresent: Bool { phase == .joined || phase == .disconnected }
    /// In a call from the perspective of others; a member that is only disconnected is not (rules 6 and 10).
    package var isBusy: Bool { phase == .joined || phase == .ringing }
  }

  package let call: CallID
  package var part: Part

  package init(call: CallID, part: Part) {
    self.call = call
    self.part = part
  }
}

/// How a KID names a sender's track and epoch: participant × 65536 + n × 256 + epoch mod 256 (protocol section 5, "Sender keys").
package struct FrameKeyID: Sendable, Hashable {
  package var participant: UInt32
  /// n of the track `participant.n`; 0 for messages.
  package var track: UInt8
  package var epochLow: UInt8

  package init(participant: UInt32, track: UInt8, epoch: UInt32) {
    self.participant = participant
    self.track = track
    epochLow = UInt8(truncatingIfNeeded: epoch)
  }

  /// nil if the number does not name a participant.
  package init?(rawValue: UInt64) {
    guard let participant = UInt32(exactly: rawValue >> 16), participant > 0 else { return nil }
    self.participant = participant
    track = UInt8(truncatingIfNeeded: rawValue >> 8)
    epochLow = UInt8(truncatingIfNeeded: rawValue)
  }

  package var rawValue: UInt64 { UInt64(participant) << 16 | UInt64(track) << 8 | UInt64(epochLow) }
}

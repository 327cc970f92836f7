package import Contract
package import MediaModel

/// The latest figures on the quality of a participant's media, in both directions. For the operator only: one value of each, in memory, for as long as
/// the participant is in the call.
package struct ParticipantQuality: Codable, Sendable, Hashable {
  /// Measured by its client (`stats`): the newest value of each number, whichever report it was in.
  package private(set) var numbers: QualityNumbers?
  /// When the newest of those arrived.
  package private(set) var toldAt: Timestamp?
  /// How well the SFU serves it, 0 to 4 (protocol section 6, "Quality").
  package private(set) var level: Int?
  /// Payload sent to it in bit/s when the level was judged.
  package private(set) var bitrate: Int?
  package private(set) var judgedAt: Timestamp?
  /// Tracks in its slots.
  package private(set) var receives: Int?

  package init() {}

  package mutating func told(_ newer: QualityNumbers, now: Timestamp) {
    numbers = QualityNumbers(
      rtt: newer.rtt ?? numbers?.rtt, loss: newer.loss ?? numbers?.loss, jitter: newer.jitter ?? numbers?.jitter,
      freezes: newer.freezes ?? numbers?.freezes, firstFrameMs: newer.firstFrameMs ?? numbers?.firstFrameMs)
    toldAt = now
  }

  package mutating func judged(_ level: Int, bitrate: Int, now: Timestamp) {
    self.level = level
    self.bitrate = bitrate
    judgedAt = now
  }

  package mutating func filled(slots: Int) { receives = slots }
}

extension ParticipantQuality: CustomStringConvertible { package var description: String { "quality" } }

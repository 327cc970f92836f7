import MediaModel
import Octets

/// The tracks whose frames count in one slot: its own, and for a second after a change its former one, because media and signaling overtake each
/// other (protocol section 6, "Attribution").
struct SlotTracks: Sendable {
  static let formerTime: Duration = .seconds(1)
  /// How far a frame of the former track may move its window: a forged one can do no more harm than this.
  static let formerWindow: UInt64 = 64

  private var current: TrackID?
  private var former: (track: TrackID, until: Instant)?

  enum Verdict: Sendable { case current, former, foreign }

  init() {}

  mutating func assign(_ track: TrackID?, now: Instant) {
    guard track != current else { return }
    if let current { former = (current, now.advanced(by: Self.formerTime)) }
    current = track
  }

  /// No frame counts here any longer.
  func isSpent(now: Instant) -> Bool { current == nil && (former?.until ?? now) <= now }

  func verdict(on id: FrameKeyID, now: Instant) -> Verdict {
    guard id.track > 0 else { return .foreign }
    let track = TrackID(participant: id.participant, index: id.track)
    if track == current { return .current }
    if let former, former.track == track, now < former.until { return .former }
    return .foreign
  }
}

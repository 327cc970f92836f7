import MediaModel

/// How many slots a peer should have in total, and the number that it was last told.
struct SlotNeed {
  static let interval = Duration.seconds(1)

  struct Slots: Equatable {
    var audio = 0
    var video = 0
  }

  private var wanted = Slots()
  private var told = Slots()
  private var lastTold: Instant?
  private(set) var deadline: Instant?

  /// - Parameters:
  ///   - wanted: the slots for all tracks that the peer could receive, within the limits.
  ///   - existing: the slots that it has.
  mutating func update(wanted: Slots, existing: Slots, now: Instant) {
    let isShort = wanted.audio > existing.audio || wanted.video > existing.video
    self.wanted = Slots(audio: max(wanted.audio, existing.audio), video: max(wanted.video, existing.video))
    guard isShort, self.wanted != told else {
      if !isShort { told = Slots() }
      deadline = nil
      return
    }
    deadline = lastTold.map { max(now, $0.advanced(by: Self.interval)) } ?? now
  }

  /// The need to report to the peer now; nil if nothing is due.
  mutating func takeDue(_ now: Instant) -> Slots? {
    guard let due = deadline, due <= now else { return nil }
    deadline = nil
    told = wanted
    lastTold = now
    return wanted
  }
}

import MediaModel

/// When a participant did not have all the others' media, and for how long: from the loss of the server until it hears each of them again.
struct Absences: Sendable {
  /// The absences that are over.
  private(set) var gaps: [Duration] = []
  /// Since when the one that lasts does; nil before the first loss too.
  private var since: Instant?
  private(set) var isBack = false

  /// A loss while one lasts belongs to it.
  mutating func lost(at now: Instant) {
    isBack = false
    since = since ?? now
  }

  /// Returns the time without the others; nil for the first arrival without a loss.
  mutating func back(at now: Instant) -> Duration? {
    isBack = true
    guard let since else { return nil }
    self.since = nil
    gaps.append(since.duration(to: now))
    return gaps.last
  }
}

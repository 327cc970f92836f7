import MediaModel

/// The times in which a participant lacked media of others: each from the loss of the server until it hears everybody
/// again.
struct Absences: Sendable {
  /// The durations of past absences.
  private(set) var gaps: [Duration] = []
  /// The start of the current absence, if any.
  private var since: Instant?
  private(set) var isBack = false

  /// A loss during an absence does not start another one.
  mutating func lost(at now: Instant) {
    isBack = false
    since = since ?? now
  }

  /// Returns the length of the absence; nil for an arrival without one.
  mutating func back(at now: Instant) -> Duration? {
    isBack = true
    guard let since else { return nil }
    self.since = nil
    gaps.append(since.duration(to: now))
    return gaps.last
  }
}

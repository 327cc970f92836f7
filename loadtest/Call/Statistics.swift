import MediaModel

/// The running numbers of one media thread.
final class Statistics {
  var tally = Tally()
  /// Since when frames count; nil before.
  var measuringSince: Instant?

  func count(_ frame: TestFrame, at now: Instant) {
    tally.frames += 1
    tally.latency.record(nanoseconds: now.nanoseconds > frame.sentAt ? now.nanoseconds - frame.sentAt : 0)
  }

  func wasMeasuring(at time: Instant) -> Bool { measuringSince.map { time >= $0 } ?? false }
}

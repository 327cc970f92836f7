import MediaModel

/// The running totals of one media thread.
final class Statistics {
  var tally = Tally()
  /// The start of the measurement; nil before.
  var measuringSince: Instant?

  func count(_ frame: TestFrame, isVideo: Bool, at now: Instant) {
    let latency = now.nanoseconds > frame.sentAt ? now.nanoseconds - frame.sentAt : 0
    tally.frames += 1
    tally.latency.record(nanoseconds: latency)
    if !isVideo { tally.audioLatency.record(nanoseconds: latency) }
  }

  /// Notes that the thread runs now for a timer that was due at `due`.
  func woke(at now: Instant, due: Instant) { tally.lateness.record(nanoseconds: now.nanoseconds - due.nanoseconds) }

  func wasMeasuring(at time: Instant) -> Bool { measuringSince.map { time >= $0 } ?? false }
}

import MediaModel

/// The running numbers of one media thread.
final class Statistics {
  var tally = Tally()
  /// Since when frames count; nil before.
  var measuringSince: Instant?

  func wasMeasuring(at time: Instant) -> Bool { measuringSince.map { time >= $0 } ?? false }
}

/// Tells when the frames of one stream of a segment were captured.
///
/// A device's clock counts until its next one: the timestamps leave out what a person paused. In a call the first sender's report counts for the whole segment,
/// or without one the first arrival.
struct StreamClock: Sendable {
  /// In Hz, above 0.
  let rate: UInt32
  private var device: RecordedClock?
  private var senderReport: RecordedClock?
  private var arrival: RecordedClock?

  init(rate: UInt32) { self.rate = rate }

  /// The segment has this clock somewhere. The first of its source counts.
  mutating func note(_ clock: RecordedClock) {
    switch clock.source {
    case .device: device = device ?? clock
    case .senderReport: senderReport = senderReport ?? clock
    case .arrivals: arrival = arrival ?? clock
    }
  }

  /// The following frames are behind this clock.
  mutating func pass(_ clock: RecordedClock) { if clock.source == .device { device = clock } }

  /// Microseconds since 1970, rounded down; nil without a clock.
  func time(of timestamp: UInt32) -> Int64? {
    guard let clock = device ?? senderReport ?? arrival else { return nil }
    let units = Int64(Int32(bitPattern: timestamp &- clock.timestamp)) &* 1_000_000
    let (quotient, remainder) = units.quotientAndRemainder(dividingBy: Int64(rate))
    // In range: a time is below 2^53, and 2^31 units of 1 Hz are below 2^51 microseconds.
    return clock.time + (remainder < 0 ? quotient - 1 : quotient)
  }
}

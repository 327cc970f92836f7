/// How long packets wait on the path, without synchronised clocks: the current delay compared with the lowest delay of the
/// last 10 s.
struct QueueDelay: Sendable {
  private static let buckets = 10
  private static let recentBuckets = 10
  private static let recentLength = 25 * Microseconds.millisecond

  /// Mean deviation of the delay, in µs: the path's jitter. Learnt from packets after a pause, while no queue stands.
  private(set) var deviation: Microseconds = 0
  /// The lowest delay of the last 250 ms above the base: what even the luckiest packet waited, in µs.
  private(set) var standing: Microseconds = 0
  /// The same over the last 100 ms: earlier, and less certain.
  private(set) var brief: Microseconds = 0
  /// The delay of the newest packet above the base, in µs.
  private(set) var last: Microseconds = 0

  private var base = [Microseconds](repeating: .max, count: buckets)
  private var recent = [Microseconds](repeating: .max, count: recentBuckets)
  private var second: Microseconds = .min
  private var slice: Microseconds = .min
  private var mean: Microseconds?
  private var lastDeparture: Microseconds = .min

  /// A queue that stands this long is congestion: above what jitter explains.
  var gate: Microseconds { min(max(15 * .millisecond, 3 * deviation), 60 * .millisecond) }

  var isStanding: Bool { standing >= gate }

  mutating func arrived(departure: Microseconds, arrival: Microseconds) {
    let delay = arrival &- departure
    advance(&base, &second, to: departure / .second)
    advance(&recent, &slice, to: departure / Self.recentLength)
    let i = place(departure / .second, in: Self.buckets)
    let j = place(departure / Self.recentLength, in: Self.recentBuckets)
    base[i] = min(base[i], delay)
    recent[j] = min(recent[j], delay)
    let least = base.reduce(.max, min)
    last = delay &- least
    standing = recent.reduce(.max, min) &- least
    var shortest = Microseconds.max
    for age: Microseconds in 0..<4 { shortest = min(shortest, recent[place(slice - age, in: Self.recentBuckets)]) }
    brief = shortest &- least
    // The later packets of a frame wait for its first ones, which is not jitter.
    let isFirst = lastDeparture == .min || departure - lastDeparture >= 5 * .millisecond
    lastDeparture = max(lastDeparture, departure)
    guard isFirst else { return }
    guard let mean else {
      self.mean = delay
      return
    }
    let difference = delay &- mean
    self.mean = mean &+ difference / 16
    // In range: delays are within 2^58, and the addend is within 60 ms.
    if standing < gate { deviation += (min(abs(difference), 60 * .millisecond) - deviation) / 32 }
  }

  /// Clears the buckets that are too old. Time does not go back: a late packet counts for the newest bucket.
  private func advance(_ ring: inout [Microseconds], _ current: inout Microseconds, to next: Microseconds) {
    guard next > current else { return }
    let count = Microseconds(ring.count)
    let steps = current == .min ? count : min(next - current, count)
    for step in 0..<steps { ring[place(next - step, in: ring.count)] = .max }
    current = next
  }
}

/// Whether the one-way delay rises: groups of packets, a line through the last 20, and a threshold that adapts (libwebrtc's
/// `InterArrivalDelta` and `TrendlineEstimator`; G. Carlucci et al., "Congestion Control for Web Real-Time Communication", 2017).
struct DelayTrend: Sendable {
  enum Usage: Sendable { case normal, over, under }

  private struct Group {
    var firstDeparture: Microseconds
    var lastDeparture: Microseconds
    var firstArrival: Microseconds
    var lastArrival: Microseconds
  }

  private static let window = 20
  /// Packets that left within 5 ms form a group.
  private static let groupLength = 5 * Microseconds.millisecond

  private(set) var usage = Usage.normal
  private var current: Group?
  private var previous: Group?
  private var reordered = 0

  private var times = [Double](repeating: 0, count: window)
  private var delays = [Double](repeating: 0, count: window)
  private var samples = 0
  private var firstArrival: Microseconds = 0
  private var accumulated = 0.0
  private var smoothed = 0.0

  private var slope = 0.0
  private var threshold = 12.5
  private var thresholdUpdated: Microseconds?
  private var overTime: Double?
  private var overCount = 0

  /// Takes a packet. Packets come in the order of their numbers.
  /// - Parameter now: the sender's time of the report.
  ///
  /// In range: departures and arrivals are within 2^57.
  mutating func arrived(departure: Microseconds, arrival: Microseconds, now: Microseconds) {
    guard var group = current else {
      current = Group(firstDeparture: departure, lastDeparture: departure, firstArrival: arrival, lastArrival: arrival)
      return
    }
    guard departure >= group.firstDeparture else { return }
    if departure - group.firstDeparture <= Self.groupLength || isBurst(group, departure, arrival) {
      group.lastDeparture = max(group.lastDeparture, departure)
      group.lastArrival = max(group.lastArrival, arrival)
      current = group
      return
    }
    if let previous {
      let sent = group.lastDeparture - previous.lastDeparture
      let received = group.lastArrival - previous.lastArrival
      if received < 0 {
        reordered += 1
        if reordered >= 3 { self = DelayTrend(keeping: self) }
      } else if received > 3 * .second || sent > 3 * .second {
        self = DelayTrend(keeping: self)
      } else {
        reordered = 0
        add(sent: Double(sent) / 1_000, received: Double(received) / 1_000, arrival: group.lastArrival, now: now)
      }
    }
    previous = group
    current = Group(firstDeparture: departure, lastDeparture: departure, firstArrival: arrival, lastArrival: arrival)
  }

  init() {}

  /// Without history, for a new start in the same buffers.
  private init(keeping old: DelayTrend) {
    times = old.times
    delays = old.delays
    threshold = old.threshold
  }

  /// Packets that a queue on the way released together. In range: as in `arrived`.
  private func isBurst(_ group: Group, _ departure: Microseconds, _ arrival: Microseconds) -> Bool {
    let received = arrival - group.lastArrival
    return received - (departure - group.lastDeparture) < 0 && received <= 5 * .millisecond
      && arrival - group.firstArrival < 100 * .millisecond
  }

  /// In range: arrivals are as in `arrived`, and the others are not integers.
  private mutating func add(sent: Double, received: Double, arrival: Microseconds, now: Microseconds) {
    if samples == 0 { firstArrival = arrival }
    accumulated += received - sent
    smoothed = 0.9 * smoothed + 0.1 * accumulated
    times[samples % Self.window] = Double(arrival - firstArrival) / 1_000
    delays[samples % Self.window] = smoothed
    samples += 1
    let before = slope
    if samples >= Self.window { slope = fittedSlope() }
    detect(sent: sent, before: before, now: now)
  }

  /// Least squares, delay over arrival.
  private func fittedSlope() -> Double {
    let n = Double(Self.window)
    let meanTime = times.reduce(0, +) / n
    let meanDelay = delays.reduce(0, +) / n
    var numerator = 0.0
    var denominator = 0.0
    for i in 0..<Self.window {
      numerator += (times[i] - meanTime) * (delays[i] - meanDelay)
      denominator += (times[i] - meanTime) * (times[i] - meanTime)
    }
    return denominator > 0 ? numerator / denominator : slope
  }

  private mutating func detect(sent: Double, before: Double, now: Microseconds) {
    guard samples >= 2 else { return }
    let modified = Double(min(samples, 60)) * slope * 4
    if modified > threshold {
      let time = overTime.map { $0 + sent } ?? sent / 2  // in range: not integers
      overTime = time
      overCount += 1
      if time > 10, overCount > 1, slope >= before {
        overTime = 0
        overCount = 0
        usage = .over
      }
    } else {
      overTime = nil
      overCount = 0
      usage = modified < -threshold ? .under : .normal
    }
    adapt(to: abs(modified), now: now)
  }

  private mutating func adapt(to modified: Double, now: Microseconds) {
    defer { thresholdUpdated = now }
    guard let thresholdUpdated, modified <= threshold + 15 else { return }
    let gain = modified < threshold ? 0.039 : 0.0087
    let elapsed = Double(min(now - thresholdUpdated, 100 * .millisecond)) / 1_000
    threshold = min(max(threshold + gain * (modified - threshold) * elapsed, 6), 600)
  }
}

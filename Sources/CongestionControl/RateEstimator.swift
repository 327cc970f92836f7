/// The streams as the estimator has to know them: rates in bit/s on the wire, of all streams of one receiver together.
package struct RateDemand: Equatable, Sendable {
  /// With the layers that are sent now.
  package var allocated: Int
  /// With one more layer, the cheapest that is wanted; nil if all wishes are met or no step should be tried now.
  package var nextStep: Int?
  /// With everything that is wished.
  package var wished: Int
  /// There is no rate for any stream, and only audio is sent.
  package var isPaused: Bool

  package init(allocated: Int, nextStep: Int?, wished: Int, isPaused: Bool = false) {
    self.allocated = allocated
    self.nextStep = nextStep
    self.wished = wished
    self.isPaused = isPaused
  }
}

/// The rate that the path to one receiver carries, from transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// An SFU sends in steps and cannot adapt an encoder, so the estimate cannot rise by being used: it rises by probes for the next step,
/// and falls when a queue stands or when loss follows the rate. A value without clock or socket; it allocates only in `init`.
package struct RateEstimator: Sendable {
  package struct Configuration: Sendable {
    /// In bit/s: the need of audio. The target never falls below it.
    package var minimum = 60_000
    package var start = 600_000
    package var maximum = 20_000_000

    package init() {}
  }

  /// A queue that builds up within this time after a step up is attributed to the step.
  static let trial = 5 * Microseconds.second

  /// After this time without a queue, other flows, if any, leave room.
  static let calm = 6 * Microseconds.second

  let configuration: Configuration
  /// The rate that may be sent, in bit/s on the wire.
  package internal(set) var target: Int
  /// The round trip of the path plus the receiver's delay until its next report, in µs.
  package private(set) var roundTrip: Microseconds = 100 * .millisecond
  package var demand = RateDemand(allocated: 0, nextStep: nil, wished: 0)

  var history = SendHistory()
  var trend = DelayTrend()
  var queue = QueueDelay()
  var acknowledged = AcknowledgedRate()
  var loss = LossRule()
  var watchdog: Watchdog
  var probing: ProbeSchedule
  var competition = Competition()

  var lastAllocated = 0
  /// Set while a queue is being drained: 85 % of the rate at which it left.
  var drained: (rate: Int, at: Microseconds)?
  /// When the streams last took another layer.
  var raised: Microseconds = .min
  var beforeRaise = 0
  /// When a queue last stood.
  var lastQueue: Microseconds = .min
  var lastDecrease: Microseconds = .min
  var lastUpdate: Microseconds
  var lossBound = LossBound()
  var remb: (rate: Int, until: Microseconds)?
  /// nil for a receiver that reports on packets.
  var reportedRate: ReportedRate?
  /// The rate up to which steps may go, in bit/s: that of a probe, of a trial, or of what has just arrived.
  var shown: (rate: Int, at: Microseconds)?
  /// The last rate that a probe has measured, in bit/s.
  var probed: (rate: Int, at: Microseconds)?

  var report = Report()
  var lastReported: UInt16?

  /// The report that is being read.
  struct Report {
    var newestDeparture: Microseconds?
    var packets = 0
    var lost = 0
    /// Packets that the history does not know.
    var unmatched = 0
  }

  /// - Parameter reportsRateAlone: the receiver reports no packets: its rate is found from `remb` and `reported(lost:)`.
  package init(
    _ configuration: Configuration = Configuration(), now: Microseconds, reportsRateAlone: Bool = false
  ) {
    self.configuration = configuration
    target = configuration.start
    watchdog = Watchdog(now: now)
    probing = ProbeSchedule()
    lastUpdate = now
    // Half of the start rate is sent immediately; the first probe shows more.
    shown = (configuration.start / 2, now)
    if reportsRateAlone { reportedRate = ReportedRate() }
  }

  /// The rate of the pacer in bit/s. Publishers have already paced their frames; this bounds key frames and retransmissions. After a step was undone they
  /// leave more slowly, because their own queue would lower the target again.
  package var pacingRate: Int {
    // In range: the target has a maximum.
    max(probing.isCautious(now: lastUpdate) ? target / 4 * 5 : target / 2 * 3, 300_000)
  }

  /// The rate that packets or a probe have shown in the last 5 s, in bit/s. Steps up stay within it.
  package func proven(now: Microseconds) -> Int {
    if reportsRateAlone || probing.isCautious(now: now) { return target }
    let byProbe = shown.flatMap { now - $0.at < 5 * .second ? $0.rate : nil } ?? 0
    return min(target, max(byProbe, acknowledged.value ?? 0))
  }

  /// Whether a queue stands on the path: not the moment for a step up.
  package var isCongested: Bool { queue.isStanding && !competition.isPresent }

  /// The path's current rate, in bit/s; nil if there is no measurement.
  package var acknowledgedRate: Int? { acknowledged.value }

  /// The share of packets that the path loses, 0...1.
  package var lossRate: Double { loss.average }

  // MARK: Sending

  /// A packet leaves. Its number is one more than the last one's, modulo 2^16.
  /// - Parameters:
  ///   - size: bytes on the wire with IP and UDP.
  ///   - probe: the order to which it belongs; 0 without one.
  package mutating func sent(_ number: UInt16, size: Int, kind: SentKind, probe: UInt8, now: Microseconds) {
    history.append(number, size: size, kind: kind, probe: probe, now: now)
    watchdog.sent(now: now)
    probing.sent(number, size: size, kind: kind, probe: probe, now: now)
  }

  /// A packet that the receiver lacks is sent again unchanged, with its number. It counts as lost, and its late arrival says nothing about the
  /// path.
  package mutating func sentAgain(_ number: UInt16, now: Microseconds) {
    missing(number, now: now)
    history.repeat(number)
  }

  // MARK: Feedback

  /// A report says that `number` arrived.
  /// - Parameter arrival: µs of the receiver's clock.
  package mutating func received(_ number: UInt16, arrival: Microseconds, now: Microseconds) {
    // A receiver may report anything: sums and differences of such times stay far from the limits.
    guard arrival.magnitude < 1 << 56 else { return }
    guard let record = history.report(number, received: true) else {
      if !history.knows(number) { report.unmatched += 1 }
      return
    }
    let departure = SendHistory.departure(of: record, now: now)
    let size = Int(record.size)
    // In range: an arrival is within 2^56, a departure within the last hour.
    fillGap(before: number, delay: arrival - departure, now: now)
    trend.arrived(departure: departure, arrival: arrival, now: now)
    queue.arrived(departure: departure, arrival: arrival)
    if record.state != .assumed { acknowledged.arrived(at: arrival, size: size) }
    probing.arrived(probe: record.probe, at: arrival, size: size)
    report.newestDeparture = max(report.newestDeparture ?? .min, departure)
    if record.state == .missing {
      loss.recovered()
    } else {
      report.packets += 1
      loss.reported(lost: false, size: size, departure: departure, isStanding: queue.isStanding)
    }
  }

  /// Reports are lost, too. Packets between the last report and this one count for the rate as if they had taken as long as
  /// `number`.
  private mutating func fillGap(before number: UInt16, delay: Microseconds, now: Microseconds) {
    guard var missed = advance(to: number) else { return }
    while missed != number {
      if let record = history.assume(missed) {
        // In range: the delay is within 2^57.
        acknowledged.arrived(at: SendHistory.departure(of: record, now: now) + delay, size: Int(record.size))
      }
      missed &+= 1
    }
  }

  /// Moves `lastReported` forward to `number`, which is in the history. It never moves back, however reports are ordered, so each number is in one gap.
  /// - Returns: the first number after the old one; nil if it did not move, or if the history has forgotten the old one.
  private mutating func advance(to number: UInt16) -> UInt16? {
    guard let last = lastReported, history.age(of: last) < SendHistory.capacity else {
      lastReported = number
      return nil
    }
    guard history.age(of: number) < history.age(of: last) else { return nil }
    lastReported = number
    return last &+ 1
  }

  /// A report says that `number` has not arrived.
  package mutating func missing(_ number: UInt16, now: Microseconds) {
    guard let record = history.report(number, received: false) else {
      if !history.knows(number) { report.unmatched += 1 }
      return
    }
    let departure = SendHistory.departure(of: record, now: now)
    _ = advance(to: number)
    report.packets += 1
    report.lost += 1
    probing.lost(probe: record.probe)
    loss.reported(lost: true, size: Int(record.size), departure: departure, isStanding: queue.isStanding)
  }

  /// The end of a report: judges its contents.
  package mutating func endReport(now: Microseconds) {
    defer { report = Report() }
    guard let newestDeparture = report.newestDeparture else { return judgeUnmatched(now: now) }
    // In range: departures are of the last 71 minutes.
    let measured = now - newestDeparture
    roundTrip += (measured - roundTrip) / 4  // in range: the same
    acknowledged.update()
    let before = watchdog.reported(now: now)
    // Only the reports were lost if the packets that the first one covers have arrived.
    if let before, report.lost * 5 < report.packets, !queue.isStanding { target = max(target, before / 10 * 7) }
    judgeDelay(now: now)
    judgeLoss(now: now)
    judgeUnmatched(now: now)
    judgeProbe(now: now)
    restore(now: now)
    rise(now: now)
    compete(now: now)
    limit(now: now)
  }

  /// A receiver's own estimate in bit/s (draft-alvestrand-rmcat-remb-03): an upper bound for 5 s, and the target if there are no other reports.
  package mutating func remb(_ rate: Int, now: Microseconds) {
    remb = (rate, now + 5 * .second)
    if let rate = reportedRate?.report(rate, sent: demand.allocated, now: now) { target = rate }
    limit(now: now)
  }

  /// The path has changed (ICE): delays and rates of the old one say nothing about the new one.
  package mutating func pathChanged() {
    trend = DelayTrend()
    queue = QueueDelay()
    acknowledged = AcknowledgedRate()
    loss = LossRule()
    competition = Competition()
    lossBound = LossBound()
    probed = nil
  }

  /// The receiver's clock has jumped: its times before and after cannot be compared.
  package mutating func clockJumped() {
    trend = DelayTrend()
    queue = QueueDelay()
    acknowledged = AcknowledgedRate()
    probing.abort()
  }

  /// No division is needed: `rate` may be sent until a queue, loss or silence lowers the target. The current rate does not
  /// count as a step up.
  /// - Parameter sent: in bit/s.
  package mutating func presume(_ rate: Int, sent: Int, now: Microseconds) {
    demand = RateDemand(allocated: sent, nextStep: nil, wished: sent)
    lastAllocated = sent
    target = max(target, rate)
    limit(now: now)
  }

  // MARK: Time

  /// Every 20 ms or so, and before a probe is asked for.
  package mutating func tick(now: Microseconds) {
    if let rate = reportedRate?.tick(nextStep: demand.nextStep, now: now) {
      target = max(target, rate)
      return limit(now: now)
    }
    // Measured rates vary by less than an eighth; another layer adds at least that much.
    if demand.allocated > lastAllocated + lastAllocated / 8 {
      raised = now
      beforeRaise = lastAllocated
      probing.raised(now: now)
    }
    lastAllocated = demand.allocated
    if watchdog.isSilent(target: target, roundTrip: roundTrip, now: now) {
      target /= 2
      probing.abort()
      limit(now: now)
    }
  }

  /// Makes room for one more layer, although nothing has shown that it fits. A queue that follows undoes the step.
  package mutating func tryStep(now: Microseconds) {
    guard let next = demand.nextStep else { return }
    target = max(target, next / 100 * 107 + 10_000)
    shown = (target, now)
  }

  /// A probe to begin now, if there is a layer to gain and the path is quiet.
  package mutating func probe(now: Microseconds) -> ProbeOrder? {
    guard !reportsRateAlone, !queue.isStanding, trend.usage != .over, roundTrip < 1_500 * .millisecond,
      watchdog.before == nil, lastDecrease == .min || now - lastDecrease > .second
    else { return nil }
    var limit = remb.flatMap { now < $0.until ? $0.rate : nil } ?? configuration.maximum
    if let bound = lossBound.current(now: now) {
      // A queue may have lowered the target far below what loss allows.
      guard let next = demand.nextStep, next < bound / 100 * 85 else { return nil }
      limit = min(limit, bound)
    }
    return probing.order(
      demand: demand, isCalm: lastQueue == .min || now - lastQueue > Self.calm, target: target,
      proven: proven(now: now), limit: limit, loss: loss.average, deviation: queue.deviation,
      roundTrip: roundTrip, now: now)
  }
}

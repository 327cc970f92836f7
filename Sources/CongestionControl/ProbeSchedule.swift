/// When to probe, at which rate, and the result.
struct ProbeSchedule: Sendable {
  private static let shortest = 500 * Microseconds.millisecond
  private static let caution = 20 * Microseconds.second
  private static let longest = 5 * Microseconds.second

  private var current: Probe?
  private var lastID: UInt8 = 0
  private var earliest: Microseconds = .min
  private var interval = shortest
  private var cautiousUntil: Microseconds = .min
  private var isBold = false
  /// A short bold probe succeeded, and a long one has to confirm it.
  private var isConfirming = false
  private var mediaPackets = 0
  private var hasProbed = false
  /// How much the delay varied before the last probe if that failed; else 0.
  private var failedUnder: Microseconds = 0

  // MARK: The probe under way

  mutating func sent(_ number: UInt16, size: Int, kind: SentKind, probe: UInt8, now: Microseconds) {
    if kind == .video { mediaPackets += 1 }
    if probe != 0, current?.order.id == probe { current?.sent(number, size: size, now: now) }
  }

  mutating func arrived(probe: UInt8, at arrival: Microseconds, size: Int) {
    if probe != 0, current?.order.id == probe { current?.arrived(at: arrival, size: size) }
  }

  mutating func lost(probe: UInt8) { if probe != 0, current?.order.id == probe { current?.lost() } }

  /// The path is full: from here on the probe measures only the queue.
  mutating func abort() {
    guard let current else { return }
    failed(now: current.began)
  }

  /// Ends the probe once all of it was reported, or after a timeout.
  /// - Returns: the rate that it has shown, in bit/s.
  mutating func result(
    loss: Double, deviation: Microseconds, roundTrip: Microseconds, now: Microseconds
  ) -> Int? {
    guard let probe = current else { return nil }
    guard probe.isReported || now - probe.began > 2 * roundTrip + 500 * .millisecond else { return nil }
    guard let result = probe.result(loss: loss, deviation: deviation) else {
      failed(now: now)
      return nil
    }
    if result >= probe.goal {
      current = nil
      failedUnder = 0
      if isBold {
        if isConfirming { cautiousUntil = .min }
        isConfirming.toggle()
        earliest = now
        return nil
      }
      interval = Self.shortest
      earliest = now
    } else {
      failed(now: now)
    }
    return result
  }

  /// A step was taken. It must show whether it fits before the next one is tried.
  mutating func raised(now: Microseconds) { earliest = max(earliest, now + 300 * .millisecond) }

  /// A step up was undone because of a queue: others may share the link. The rate then creeps up, and only a bold probe ends this
  /// early.
  mutating func undone(now: Microseconds) {
    cautiousUntil = now + Self.caution
    earliest = max(earliest, now + 4 * .second)
    isConfirming = false
    current = nil
    failedUnder = 0
  }

  /// Whether the next step is reached by creeping rather than by a probe.
  func isCautious(now: Microseconds) -> Bool { now < cautiousUntil }

  private mutating func failed(now: Microseconds) {
    failedUnder = current?.deviation ?? 0
    current = nil
    isConfirming = false
    earliest = now + interval
    interval = min(interval * 3 / 2, Self.longest)
    if isBold { earliest = max(earliest, now + Self.longest) }
  }

  /// A full path delays each packet differently. When the delay varies much less than before the last probe, the path has changed, and its failure no longer counts.
  private mutating func noteChange(_ deviation: Microseconds, now: Microseconds) {
    guard failedUnder > 3 * .millisecond, deviation * 3 < failedUnder else { return }
    failedUnder = 0
    interval = Self.shortest
    earliest = min(earliest, now)
  }

  // MARK: The next one

  /// - Parameters:
  ///   - limit: the highest rate to try.
  mutating func order(
    demand: RateDemand, isCalm: Bool, target: Int, proven: Int, limit: Int, loss: Double,
    deviation: Microseconds, roundTrip: Microseconds, now: Microseconds
  ) -> ProbeOrder? {
    if let current, now - current.began > 2 * roundTrip + .second { failed(now: now) }
    noteChange(deviation, now: now)
    guard current == nil, now >= earliest, mediaPackets >= 5 || hasProbed else { return nil }
    guard var next = demand.nextStep, next > 0 else { return nil }
    guard isCalm || !isCautious(now: now) else { return nil }
    // If the path carries twice the rate of the step, it has changed. A short probe at 2.5 times finds that, and a long one at twice confirms
    // it.
    isBold = isCautious(now: now)
    // The step needs 5 % more than its rate. That much has already been shown.
    let goal = (isBold ? next * 2 : next) / 100 * 107 + 10_000
    guard goal > proven else { return nil }
    if isBold { next = isConfirming ? next * 2 : next / 2 * 5 }
    let isNoisy = deviation > 5 * .millisecond
    var most = target * 2
    if !hasProbed { most = target * 4 } else if isBold { most = target * 3 } else if isNoisy { most = target / 10 * 17 }
    let wanted = hasProbed ? max(next / 100 * 120 + 60_000, target / 2 * 3) : most
    let rate = min(min(max(wanted, 200_000), max(most, 200_000)), limit, max(demand.wished / 10 * 13, goal))
    var length = isNoisy ? min(max(8 * deviation, 25 * .millisecond), 300 * .millisecond) : 25 * .millisecond
    if isBold, isConfirming { length = max(length, 200 * .millisecond) }
    let packets = Int((6 / max(0.5, 1 - loss)).rounded(.up))
    hasProbed = true
    lastID = lastID == 255 ? 1 : lastID + 1
    let order = ProbeOrder(id: lastID, rate: rate, bytes: bytes(at: rate, in: length), packets: packets)
    current = Probe(order: order, goal: min(goal, rate / 100 * (isBold ? 92 : 85)), began: now, deviation: deviation)
    return order
  }
}

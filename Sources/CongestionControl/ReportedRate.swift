/// The rate of a receiver that reports a rate (REMB) and its loss, but no packets.
///
/// Until the estimate falls, everything is sent: it follows what arrives, so at first it says nothing about the path. The estimate of libwebrtc's receivers
/// rises by 8 % a second to one and a half times what arrives (`AimdRateControl`), so it never admits a layer larger than that. Such a layer is tried: the
/// receiver keeps it if its estimate rises meanwhile, and loses it when the estimate falls.
struct ReportedRate {
  private static let trial = 3 * Microseconds.second
  /// Time from a fall to the next trial; doubled after each trial that failed.
  private static let waits = (shortest: 5 * Microseconds.second, longest: 60 * Microseconds.second)

  /// The last estimate of the receiver, in bit/s.
  private var rate = 0
  /// The rate of a layer that is being tried or was tried successfully, in bit/s; 0 for none. Any rate before the first
  /// fall.
  private(set) var granted = Int.max
  private var running: (since: Microseconds, rate: Int)?
  private var fell: Microseconds?
  private var wait = waits.shortest

  /// Takes the receiver's estimate.
  /// - Parameter sent: the rate of the streams. A first estimate far below it was made on a path with a queue.
  /// - Returns: the rate that may be sent.
  ///
  /// In range: REMB has 58 bits, and only a share of it is computed.
  mutating func report(_ new: Int, sent: Int, now: Microseconds) -> Int {
    let last = rate > 0 ? rate / 100 * 97 : sent / 100 * 85
    if new < last { fall(now: now) }
    rate = new
    return max(rate, granted)
  }

  /// The estimate fell, or packets were lost.
  mutating func fall(now: Microseconds) {
    if running != nil { wait = min(2 * wait, Self.waits.longest) }
    running = nil
    granted = 0
    fell = now
  }

  /// Ends a trial that is over, or begins one.
  /// - Parameter nextStep: the rate with one more layer; nil if none is wanted.
  /// - Returns: the rate that may be sent.
  ///
  /// In range: as in `report`.
  mutating func tick(nextStep: Int?, now: Microseconds) -> Int {
    if let running, now - running.since >= Self.trial {
      if rate >= running.rate / 100 * 103 {
        self.running = nil
        wait = Self.waits.shortest
      } else {
        fall(now: now)
      }
    }
    let hasWaited = fell.map { now - $0 >= wait } ?? true
    if running == nil, hasWaited, let nextStep, nextStep > max(rate, granted) {
      running = (now, rate)
      granted = nextStep / 100 * 107 + 10_000
    }
    return max(rate, granted)
  }
}

extension RateEstimator {
  /// The receiver reports a rate and its loss, but no packets.
  package var reportsRateAlone: Bool { reportedRate != nil }

  /// A loss of a tenth of the packets is too much (draft-ietf-rmcat-gcc-02 section 6). Does nothing for a receiver that reports on
  /// packets.
  /// - Parameter share: of the packets of a stream since its last report, 0...1.
  package mutating func reported(lost share: Double, now: Microseconds) {
    guard reportsRateAlone, share > 0.1, lastDecrease == .min || now - lastDecrease >= .second else { return }
    reportedRate?.fall(now: now)
    lastDecrease = now
    target -= Int(Double(target) * share / 2)  // in range: a share of it
    lossBound.set(to: target, for: 3 * .second, now: now)
    limit(now: now)
  }
}

import MediaModel

/// Decides when the outbox leaves: immediately on a quiet socket and an idle core, later if waiting makes longer runs.
///
/// Held packets become longer runs to each receiver, and a run costs hardly more than one datagram. Video waits for up to a millisecond while packets keep coming:
/// at 10,000 packets a second to ten receivers that saved between a quarter and a half of the CPU. The less the thread works, the shorter video waits: in a call of
/// five, 3 % of a core, a wait of a millisecond was most of the latency.
///
/// Audio waits, too, for the duration of a flush multiplied by the load of the thread. A packet to 1,000 receivers takes 5 ms to send, and two that leave together
/// take hardly longer than one. In a small call a flush takes microseconds, and an idle thread has no load, so neither holds anything back.
struct FlushRule {
  /// When the held packets leave; nil if nothing is held.
  private(set) var deadline: Instant?
  private var lastArrival: Instant?
  private var isBusy = false

  /// The share of its time that the thread works, 0...1, over about `loadTime`.
  private(set) var load = 0.0
  private var loadSince: Instant?
  /// Datagrams since the thread last waited, and how many of them were not dropped as a flood.
  private var handled = 0
  private var kept = 0
  /// How long a flush takes, in nanoseconds: a moving average.
  private var flushTime = 0.0

  /// The longest time that video is held while packets keep coming, which means within this time of each other.
  let hold: Duration

  /// From this load on video is held for the whole time.
  private static let fullHoldLoad = 0.25
  private static let loadTime = Duration.milliseconds(100)
  /// An audio delay that listeners do not notice.
  static let longestHold = Duration.milliseconds(5)
  /// A shorter wait is not worth the wake-up.
  private static let shortestHold = Duration.microseconds(100)
  /// A run takes a microsecond or two. A longer flush was interrupted by another program.
  private static let longestRun = Duration.microseconds(10)

  init(hold: Duration = .milliseconds(1)) { self.hold = hold }

  /// Called once for each batch of datagrams that contains more than a flood.
  mutating func arrived(now: Instant) {
    isBusy = lastArrival.map { $0.duration(to: now) < hold } ?? false
    lastArrival = now
  }

  /// The thread has waited for work until now.
  mutating func woke(now: Instant) { pass(working: 0, now: now) }

  /// Called once for each batch. Time spent on a flood is not load for which other packets are held.
  mutating func handled(kept: Int, of datagrams: Int) {
    handled += datagrams
    self.kept += kept
  }

  /// The thread begins to wait.
  mutating func waits(now: Instant) {
    pass(working: handled > 0 ? Double(kept) / Double(handled) : 1, now: now)
    (handled, kept) = (0, 0)
  }

  private mutating func pass(working share: Double, now: Instant) {
    if let loadSince {
      let time = Double(loadSince.duration(to: now).nanoseconds)
      load += (share - load) * time / (time + Double(Self.loadTime.nanoseconds))
    }
    loadSince = now
  }

  /// The wait after which packets to many receivers leave together; zero if there is nothing to gain.
  private var gainfulHold: Duration {
    let wait = min(.nanoseconds(Int64(flushTime * load)), Self.longestHold)
    return wait < Self.shortestHold ? .zero : wait
  }

  /// The wait of video for packets that keep coming. A core with spare time holds nothing.
  private var videoHold: Duration {
    let wait = hold * min(load / Self.fullHoldLoad, 1)
    return wait < Self.shortestHold ? .zero : wait
  }

  /// Whether the outbox must be sent now. Called after each batch, and at `deadline`.
  mutating func isDue(now: Instant, isEmpty: Bool, isUrgent: Bool) -> Bool {
    guard !isEmpty else { return false }
    let wait = max(gainfulHold, isBusy && !isUrgent ? videoHold : .zero)
    guard wait > .zero else { return true }
    let end = min(deadline ?? now.advanced(by: wait), now.advanced(by: wait))
    deadline = end
    return now >= end
  }

  /// The outbox has been sent: this many runs in this time.
  mutating func flushed(in time: Duration, runs: Int) {
    deadline = nil
    let time = min(time, .nanoseconds(Self.longestRun.nanoseconds * Int64(runs)))
    flushTime += (Double(time.nanoseconds) - flushTime) / 8
  }
}

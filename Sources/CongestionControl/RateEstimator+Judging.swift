/// Judges a report that has been read.
extension RateEstimator {
  /// How long the rate is lowered to compare the loss, and how rarely.
  private static let comparison = 4 * Microseconds.second
  private static let comparisonPause = 300 * Microseconds.second

  mutating func judgeDelay(now: Microseconds) {
    if queue.isStanding || trend.usage == .over { lastQueue = now }
    competition.observe(standing: queue.standing, gate: queue.gate, now: now)
    guard queue.isStanding || queue.brief > queue.gate + 15 * .millisecond, !competition.isPresent else { return }
    // The flow that has just taken a layer gives it back before others react; they wait to see whether that suffices.
    let isSuspect = probing.isCautious(now: now) || (raised != .min && now - raised < Self.trial)
    let isDue =
      isSuspect
      ? queue.brief > queue.gate + 15 * .millisecond || trend.usage == .over
      : queue.standing > 100 * .millisecond || competition.standingTime(now: now) > 700 * .millisecond
    guard isDue else { return }
    guard !isDraining(now: now) else { return }
    if isSuspect {
      probing.undone(now: now)
      if raised != .min, now - raised < Self.trial {
        target = min(target, max(configuration.minimum, beforeRaise / 100 * 104))
      }
      raised = .min
      shown = nil
    }
    // A long queue is drained first: the rate at which it leaves is known, and restored when it is gone.
    let share =
      switch queue.standing {
      case ..<(100 * .millisecond): 85
      case ..<(250 * .millisecond): 70
      case ..<(500 * .millisecond): 50
      default: 30
      }
    if share < 85, let value = acknowledged.value, !isSuspect { drained = (min(target, value / 100 * 85), now) }
    decrease(now: now, share: share)
  }

  /// Whether the path drains the queue while the current layers continue, as after a key frame. The arriving rate shows this, for a second. Right after a
  /// step it is still the rate from before the step. Then the last probe shows it, for only 300 ms: beside other flows a probe passes between their frames.
  private func isDraining(now: Microseconds) -> Bool {
    let time = competition.standingTime(now: now)
    if let value = acknowledged.value, demand.allocated * 100 <= value * 97 {
      return time < .second && queue.standing < 300 * .millisecond
    }
    guard let probed, now - probed.at < Self.trial, demand.allocated * 100 <= probed.rate * 97,
      !probing.isCautious(now: now)
    else { return false }
    return time < 300 * .millisecond && queue.brief < 100 * .millisecond
  }

  /// The queue is gone: returns to the rate at which it disappeared.
  mutating func restore(now: Microseconds) {
    guard let (rate, at) = drained, queue.standing < queue.gate / 2 else { return }
    drained = nil
    if now - at < 5 * .second { target = max(target, rate) }
  }

  mutating func judgeLoss(now: Microseconds) {
    if loss.congestive > 0.04 {
      decrease(now: now, share: 85)
    } else if !queue.isStanding, !lossBound.isFresh(now: now), !hasPausedInVain, loss.followsRate,
      let value = acknowledged.value
    {
      bound(to: value, now: now)
    } else if isLossUnexplained(now: now), let value = acknowledged.value {
      lossBound.compare(at: max(configuration.minimum, value / 10 * 7), for: Self.comparison, now: now)
      probing.abort()
    }
  }

  /// Loss follows the rate: for a while no more is sent than arrives.
  private mutating func bound(to value: Int, now: Microseconds) {
    if let bound = lossBound.current(now: now) {
      // The bound is too high if much is lost below it, too.
      guard loss.average > 0.1 else { return }
      return lossBound.lower(to: max(configuration.minimum, min(value, bound / 100 * 85)), now: now)
    }
    lossBound.set(to: max(configuration.minimum, value), now: now)
    // Streams that paused resume within what has just arrived.
    shown = (value, now)
    probing.abort()
  }

  /// Much is lost without a queue, and no lower rate was tried recently. A lower rate is tried only for a moment, and rarely, because the loss
  /// may be inherent to the path.
  private func isLossUnexplained(now: Microseconds) -> Bool {
    !demand.isPaused && (lastQueue == .min || now - lastQueue > 5 * .second)
      && !lossBound.hasCompared(within: Self.comparisonPause, now: now)
      && lossBound.current(now: now) == nil && loss.lacksComparison
  }

  /// All streams are paused although the path has just carried more than the next step. A bound would be the rate of audio alone, and keep them
  /// paused.
  private var hasPausedInVain: Bool { demand.isPaused && demand.nextStep.map { $0 <= loss.passed } ?? false }

  /// A history that does not match the reports says nothing, and a full path looks exactly like that.
  mutating func judgeUnmatched(now: Microseconds) {
    if report.unmatched * 4 > report.packets, report.unmatched > 4 { decrease(now: now, share: 85) }
  }

  mutating func judgeProbe(now: Microseconds) {
    if queue.standing > queue.gate + 25 * .millisecond { probing.abort() }
    let result = probing.result(loss: loss.average, deviation: queue.deviation, roundTrip: roundTrip, now: now)
    if let result {
      target = max(target, result)
      shown = (result, now)
      probed = (result, now)
    }
  }

  /// Lowers the target to a share, in percent, of what arrives. Not twice for the same queue.
  mutating func decrease(now: Microseconds, share: Int) {
    guard lastDecrease == .min || now - lastDecrease > min(max(roundTrip, 50 * .millisecond), 300 * .millisecond)
    else { return }
    lastDecrease = now
    let value = acknowledged.value ?? target
    let lower = max(configuration.minimum, value / 100 * share)
    if lower < target / 100 * 95 { competition.wasCut(standing: queue.standing, now: now) }
    target = min(target, lower)
    shown = nil
    probed = nil
    loss.forgetCongestion()
  }

  /// Against a flow that fills the queue, a step is tried every 2 s as long as little is lost.
  mutating func compete(now: Microseconds) {
    guard competition.isPresent, demand.nextStep != nil, loss.congestive < 0.02,
      lastDecrease == .min || now - lastDecrease > .second
    else { return }
    tryStep(now: now)
    lastDecrease = now
  }

  /// 8 % a second while the streams use the available rate. On a path shared with others, one packet in two response times, regardless of use, up to
  /// half as much again as they use (libwebrtc's `AimdRateControl` near the capacity).
  mutating func rise(now: Microseconds) {
    let elapsed = min(now - lastUpdate, .second)
    lastUpdate = now
    guard let value = acknowledged.value, trend.usage == .normal, !queue.isStanding,
      lastDecrease == .min || now - lastDecrease > 500 * .millisecond
    else { return }
    if probing.isCautious(now: now) {
      let response = 2 * (roundTrip + 100 * .millisecond)
      let increase = bytes(at: 9_600_000, in: elapsed) * 8 / Int(response / .millisecond)
      target = max(target, min(target + increase, value / 2 * 3))
    } else if value > target / 20 * 17 {
      target += target / 1_000 * Int(80 * elapsed / .second)
    }
  }

  mutating func limit(now: Microseconds) {
    if let bound = lossBound.current(now: now) { target = min(target, bound) }
    if let remb, now < remb.until { target = min(target, max(remb.rate, reportedRate?.granted ?? 0)) }
    target = min(max(target, configuration.minimum), configuration.maximum)
  }
}

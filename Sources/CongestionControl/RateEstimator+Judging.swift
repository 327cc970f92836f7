/// Judgements of a report that has been read.
extension RateEstimator {
  mutating func judgeDelay(now: Microseconds) {
    if queue.isStanding || trend.usage == .over { lastQueue = now }
    competition.observe(standing: queue.standing, gate: queue.gate, now: now)
    guard queue.isStanding || queue.brief > queue.gate + 15 * .millisecond, !competition.isPresent else { return }
    // The flow that has just taken a layer gives it back before others notice; they wait whether that is enough.
    let isSuspect = probing.isCautious(now: now) || (raised != .min && now - raised < Self.trial)
    let isDue =
      isSuspect
      ? queue.brief > queue.gate + 15 * .millisecond || trend.usage == .over
      : queue.standing > 100 * .millisecond || competition.standingTime(now: now) > 700 * .millisecond
    guard isDue else { return }
    // A queue that the layers of now will drain, as after a key frame, is left a second to do so.
    if let value = acknowledged.value, demand.allocated * 100 <= value * 97,
      competition.standingTime(now: now) < .second, queue.standing < 300 * .millisecond
    {
      return
    }
    if isSuspect {
      probing.undone(now: now)
      if raised != .min, now - raised < Self.trial {
        target = min(target, max(configuration.minimum, beforeRaise / 100 * 104))
      }
      raised = .min
      shown = nil
    }
    // A long queue is emptied first: the rate that it leaves at is known, and restored when it is gone.
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

  /// The queue is gone: returns to the rate at which it disappeared.
  mutating func restore(now: Microseconds) {
    guard let (rate, at) = drained, queue.standing < queue.gate / 2 else { return }
    drained = nil
    if now - at < 5 * .second { target = max(target, rate) }
  }

  mutating func judgeLoss(now: Microseconds) {
    if loss.congestive > 0.04 {
      decrease(now: now, share: 85)
    } else if !queue.isStanding, loss.followsRate, let value = acknowledged.value, lossBound(now: now) == nil {
      // Again within the same time after the last: wait longer.
      let last = lossCap.flatMap { now - $0.until < 2 * $0.length ? $0.length : nil }
      let length = last.map { min(32 * .second, $0 * 2) } ?? 8 * .second
      lossCap = (max(configuration.minimum, value), now + length, length)
      // Streams that paused come back within what has just arrived.
      shown = (value, now)
      probing.abort()
    }
  }

  /// A history that does not match the reports says nothing, and a path that is full looks just so.
  mutating func judgeUnmatched(now: Microseconds) {
    if unmatched * 4 > reportedPackets, unmatched > 4 { decrease(now: now, share: 85) }
  }

  mutating func judgeProbe(now: Microseconds) {
    if queue.standing > queue.gate + 25 * .millisecond { probing.abort() }
    let result = probing.result(loss: loss.average, deviation: queue.deviation, roundTrip: roundTrip, now: now)
    if let result {
      target = max(target, result)
      shown = (result, now)
    }
  }

  /// To a share, in percent, of what arrives. Not twice for the same queue.
  mutating func decrease(now: Microseconds, share: Int) {
    guard lastDecrease == .min || now - lastDecrease > min(max(roundTrip, 50 * .millisecond), 300 * .millisecond)
    else { return }
    lastDecrease = now
    let value = acknowledged.value ?? target
    let lower = max(configuration.minimum, value / 100 * share)
    if lower < target / 100 * 95 { competition.wasCut(standing: queue.standing, now: now) }
    target = min(target, lower)
    shown = nil
    loss.forgetCongestion()
  }

  /// Against a flow that fills the queue a step is tried every 2 s as long as little is lost.
  mutating func compete(now: Microseconds) {
    guard competition.isPresent, demand.nextStep != nil, loss.congestive < 0.02,
      lastDecrease == .min || now - lastDecrease > .second
    else { return }
    tryStep(now: now)
    lastDecrease = now
  }

  /// 8 % a second while the streams use what there is. On a path that others share, one packet in two response times, whatever they use, up to half as
  /// much again as they do (libwebrtc's `AimdRateControl` near the capacity).
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
    if let bound = lossBound(now: now) { target = min(target, bound) }
    if let remb, now < remb.until { target = min(target, max(remb.rate, reportedRate?.granted ?? 0)) }
    target = min(max(target, configuration.minimum), configuration.maximum)
  }
}

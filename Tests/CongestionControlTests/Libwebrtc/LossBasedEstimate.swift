import CongestionControl
import Glibc

/// `LossBasedBweV2` with its default constants: a channel of a limit and an inherent loss is fitted to the last observations.
struct LossBasedEstimate {
  enum State { case delayBased, decreasing, increasing }

  private struct Observation {
    var size = 0.0
    var lost = 0.0
    var rate = 0.0
    var id = -1
  }

  private struct Channel {
    var inherent: Double
    /// kbit/s.
    var limit: Double
  }

  private var observations = [Observation](repeating: Observation(), count: 15)
  private var count = 0
  private var partial = Observation()
  private var partialBegan: Microseconds?
  private var best: Channel?
  private(set) var state = State.delayBased
  private var windowLimit = Double.infinity
  private var recovering: Microseconds = .min
  private var lastReduced: Microseconds = .min
  private var holdUntil: Microseconds = .min
  private var holdRate = Double.infinity
  private var holdLength = 300 * millisecond

  /// - Parameters: rates in kbit/s, sizes in kB.
  /// - Returns: the estimate in kbit/s.
  mutating func update(
    size: Double, lost: Double, from first: Microseconds, to last: Microseconds, delayBased: Double,
    acknowledged: Double?
  ) -> Double {
    partial.size += size
    partial.lost += lost
    if partialBegan == nil { partialBegan = first }
    guard let began = partialBegan, last - began >= 250 * millisecond else { return estimate(delayBased) }
    partial.rate = partial.size * 8 * 1_000_000 / Double(last - began)
    partial.id = count
    observations[count % 15] = partial
    count += 1
    partial = Observation()
    partialBegan = last
    guard count >= 3 else { return delayBased }
    let current = best ?? Channel(inherent: 0.01, limit: delayBased)
    let average = averageLoss()
    var winner = current
    var highest = -Double.infinity
    for var candidate in candidates(current, delayBased, acknowledged) {
      newton(&candidate, average)
      let value = objective(candidate, average)
      if value > highest {
        highest = value
        winner = candidate
      }
    }
    if winner.limit < current.limit { lastReduced = last }
    if average > winner.inherent, winner.limit > current.limit { winner.limit = current.limit }
    let isLimited = state != .delayBased
    if isLimited {
      if recovering != .min, recovering + 300 * millisecond > last, winner.limit > windowLimit {
        winner.limit = windowLimit
      }
      if winner.limit > current.limit, let acknowledged {
        winner.limit = min(winner.limit, max(current.limit, (last < holdUntil ? 1.2 : 1.5) * acknowledged))
      }
      if last < holdUntil { winner.limit = min(winner.limit, holdRate) }
    }
    if let acknowledged { winner.limit = max(winner.limit, min(acknowledged, current.limit)) }
    var bounded = min(winner.limit, delayBased)
    bounded = min(bounded, instantLimit(average))
    if isLimited, recovering == .min || recovering + 300 * millisecond <= last {
      windowLimit = max(10, current.limit * 1.3)
      recovering = last
    }
    if bounded < delayBased {
      if isLimited, bounded > current.limit {
        state = .increasing
      } else if bounded < current.limit || !isLimited {
        if state != .decreasing {
          holdRate = bounded
          holdUntil = last + holdLength
          holdLength = min(60 * second, holdLength * 2)
        }
        state = .decreasing
      }
      best = Channel(inherent: winner.inherent, limit: bounded)
    } else {
      state = .delayBased
      holdLength = 300 * millisecond
      holdUntil = .min
      best = Channel(inherent: winner.inherent, limit: winner.limit)
    }
    return estimate(delayBased)
  }

  private func estimate(_ delayBased: Double) -> Double {
    guard let best, state != .delayBased else { return delayBased }
    return min(best.limit, delayBased)
  }

  private func weight(_ observation: Observation) -> Double { pow(0.9, Double(count - 1 - observation.id)) }

  /// In bytes, without the best and the worst observation.
  private func averageLoss() -> Double {
    var all = observations.filter { $0.id >= 0 }
    if all.count > 3 {
      all.sort { $0.lost / max($0.size, 0.001) < $1.lost / max($1.size, 0.001) }
      all.removeFirst()
      all.removeLast()
    }
    var size = 0.0
    var lost = 0.0
    for observation in all {
      size += weight(observation) * observation.size
      lost += weight(observation) * observation.lost
    }
    return size > 0 ? lost / size : 0
  }

  private func candidates(_ current: Channel, _ delayBased: Double, _ acknowledged: Double?) -> [Channel] {
    var limits = [1.02, 1, 0.95].map { $0 * current.limit }
    if let acknowledged { limits.append(acknowledged) }
    if delayBased > current.limit { limits.append(delayBased) }
    return limits.map { Channel(inherent: current.inherent, limit: max(10, min($0, delayBased))) }
  }

  private func inherentLimit(_ limit: Double) -> Double { min(1, max(0.001, 0.05 + 100 / max(limit, 1))) }

  private func probability(_ channel: Channel, _ rate: Double) -> Double {
    var loss = channel.inherent
    if rate > channel.limit, rate > 0 { loss += (1 - loss) * (rate - channel.limit) / rate }
    return min(max(loss, 1e-6), 1 - 1e-6)
  }

  private func newton(_ channel: inout Channel, _ average: Double) {
    var first = 0.0
    var second = 0.0
    for observation in observations where observation.id >= 0 {
      let loss = probability(channel, observation.rate)
      let w = weight(observation)
      first += w * (observation.lost / loss - (observation.size - observation.lost) / (1 - loss))
      second -=
        w * (observation.lost / (loss * loss) + (observation.size - observation.lost) / ((1 - loss) * (1 - loss)))
    }
    if second < 0 { channel.inherent -= 0.75 * first / second }
    channel.inherent = min(max(channel.inherent, 0.001), inherentLimit(channel.limit))
  }

  private func objective(_ channel: Channel, _ average: Double) -> Double {
    let bias = (0.2 - average) / (0.2 + average)
    let preference = bias * (0.0002 * channel.limit + 0.02 * log(1 + channel.limit))
    var sum = 0.0
    for observation in observations where observation.id >= 0 {
      let loss = probability(channel, observation.rate)
      sum +=
        weight(observation)
        * (observation.lost * log(loss) + (observation.size - observation.lost) * log(1 - loss)
          + preference * observation.size)
    }
    return sum
  }

  private func instantLimit(_ average: Double) -> Double { average > 0.05 ? 100 / (average - 0.05) : .infinity }
}

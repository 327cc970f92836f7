import CongestionControl
import Glibc

@testable import struct CongestionControl.DelayTrend

/// `AimdRateControl`. Rates in bit/s.
struct RateControl {
  private enum State { case hold, increase, decrease }

  private(set) var rate: Double
  private var state = State.hold
  private var lastChange: Microseconds = .min
  private(set) var lastDecrease: Microseconds = .min
  private var throughput: Double
  private var capacity: Double?
  private var deviation = 0.4

  init(start: Double) {
    rate = start
    throughput = start
  }

  mutating func set(_ rate: Double, now: Microseconds) {
    self.rate = rate
    lastChange = now
  }

  func mayReduceFurther(_ acknowledged: Double, roundTrip: Microseconds, now: Microseconds) -> Bool {
    lastChange == .min || now - lastChange >= min(max(roundTrip, 10 * millisecond), 200 * millisecond)
      || acknowledged < 0.5 * rate
  }

  mutating func update(_ usage: DelayTrend.Usage, _ acknowledged: Double?, roundTrip: Microseconds, now: Microseconds) {
    switch usage {
    case .normal:
      if state == .hold {
        lastChange = now
        state = .increase
      }
    case .over: state = .decrease
    case .under: state = .hold
    }
    if let acknowledged { throughput = acknowledged }
    switch state {
    case .hold: break
    case .increase:
      if let capacity, throughput > capacity + spread(capacity) { self.capacity = nil }
      let limit = 1.5 * throughput + 10_000
      if rate < limit {
        let elapsed = Double(min(now - lastChange, second)) / 1_000_000
        let increased: Double
        if capacity != nil {
          let frame = rate / 30 / 8
          let packet = frame / max(1, (frame / 1_200).rounded(.up)) * 8
          let response = 2 * (Double(roundTrip) / 1_000_000 + 0.1)
          increased = rate + max(4_000, packet / response) * elapsed
        } else {
          increased = rate + max(1_000, rate * (pow(1.08, elapsed) - 1))
        }
        rate = min(increased, limit)
      }
      lastChange = now
    case .decrease:
      var decreased = 0.85 * throughput
      if decreased > 5_000 { decreased -= 5_000 }
      if decreased > rate, let capacity { decreased = 0.85 * capacity }
      if decreased < rate { rate = decreased }
      if let capacity, throughput < capacity - spread(capacity) { self.capacity = nil }
      learn(throughput)
      state = .hold
      lastChange = now
      lastDecrease = now
    }
  }

  private func spread(_ capacity: Double) -> Double { 3 * (deviation * capacity / 1_000).squareRoot() * 1_000 }

  private mutating func learn(_ sample: Double) {
    guard let old = capacity else {
      capacity = sample
      return
    }
    let new = 0.95 * old + 0.05 * sample
    capacity = new
    let error = (new - sample) / 1_000
    deviation = min(max(0.95 * deviation + 0.05 * error * error / max(new / 1_000, 1), 0.4), 2.5)
  }
}

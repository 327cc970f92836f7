import Testing

@testable import CongestionControl

struct ProbeScheduleTests {
  private static let target = 400_000
  private static let demand = RateDemand(allocated: 300_000, nextStep: 500_000, wished: 2_000_000)

  private var schedule = ProbeSchedule()
  private var now: Microseconds = second
  private var number: UInt16 = 0

  private mutating func order(deviation: Microseconds) -> ProbeOrder? {
    schedule.order(
      demand: Self.demand, isCalm: true, target: Self.target, proven: Self.target, limit: 10_000_000, loss: 0,
      deviation: deviation, roundTrip: 40 * millisecond, now: now)
  }

  /// Waits up to 10 s for a probe, and lets it arrive at the rate of the target, so that it fails.
  /// - Returns: how long it took until the probe was ordered.
  private mutating func fail(deviation: Microseconds) throws -> Microseconds {
    let began = now
    while now - began < 10 * second {
      guard let order = order(deviation: deviation) else {
        now += 10 * millisecond
        continue
      }
      let waited = now - began
      for i in 0..<max(order.packets, order.bytes / 1_000 + 1) {
        schedule.sent(
          number, size: 1_000, kind: .padding, probe: order.id, now: now + Microseconds(i * 8_000_000_000 / order.rate))
        schedule.arrived(
          probe: order.id, at: now + Microseconds(i * 8_000_000_000 / Self.target), size: 1_000)
        number &+= 1
      }
      now += 500 * millisecond
      let result = schedule.result(loss: 0, deviation: deviation, roundTrip: 40 * millisecond, now: now)
      #expect(try #require(result) < order.rate)
      return waited
    }
    Issue.record("no probe in 10 s")
    return 0
  }

  /// A full path delays each packet differently. When the delays become equal the path has changed, and the pause after
  /// failed probes ends.
  @Test mutating func afterFailuresOnAPathWithJitterACalmOneIsProbedAtOnce() throws {
    for _ in 0..<5 { schedule.sent(number, size: 1_000, kind: .video, probe: 0, now: now) }
    for _ in 0..<8 { _ = try fail(deviation: 12 * millisecond) }
    #expect(try fail(deviation: 12 * millisecond) > 4 * second)
    #expect(order(deviation: 5 * millisecond) == nil)
    #expect(order(deviation: 3 * millisecond) != nil)
  }

  /// On a path without jitter, continued absence of jitter means nothing.
  @Test mutating func failuresOnACalmPathAreWaitedOut() throws {
    for _ in 0..<5 { schedule.sent(number, size: 1_000, kind: .video, probe: 0, now: now) }
    for _ in 0..<8 { _ = try fail(deviation: 2 * millisecond) }
    #expect(try fail(deviation: 2 * millisecond) > 4 * second)
    #expect(order(deviation: 0) == nil)
  }
}

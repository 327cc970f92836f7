import Testing

@testable import CongestionControl

/// The estimator accepts any time from a receiver, and its state stays in range: a trap would end all calls.
struct LargestStepTests {
  private static let limit: Microseconds = 1 << 56

  /// Arrivals at the ends of the accepted range, and beyond, in each order, for packets sent up to an hour ago.
  @Test(arguments: 0..<4) func arrivalsAtTheEndsOfTheRange(order: Int) {
    var estimator = RateEstimator(now: 0)
    estimator.demand = RateDemand(allocated: 1 << 40, nextStep: 1 << 40, wished: 1 << 40)
    var now: Microseconds = 1_000_000
    var number: UInt16 = 0
    let ends: [[Microseconds]] = [
      [Self.limit - 1, 1 - Self.limit], [1 - Self.limit, 1 - Self.limit, Self.limit - 1, 0],
      [Self.limit - 1, Self.limit - 1],
      [.max, .min, Self.limit - 1, 0, 1 - Self.limit],
    ]
    let arrivals = ends[order]
    for i in 0..<(1 << 22) {
      now += i % 4_096 == 0 ? 3_600 * .second : 50
      estimator.sent(number, size: 65_535, kind: .video, probe: UInt8(truncatingIfNeeded: i >> 8), now: now)
      // Every eighth is missing first and arrives later, and every seventh is never reported.
      if i % 8 == 0 { estimator.missing(number, now: now) }
      if i % 7 != 0 { estimator.received(number, arrival: arrivals[i % arrivals.count], now: now) }
      number &+= 1
      guard i % 16 == 0 else { continue }
      estimator.endReport(now: now)
      estimator.tick(now: now)
      _ = estimator.probe(now: now)
      _ = estimator.proven(now: now)
    }
    #expect((60_000...20_000_000).contains(estimator.target))
  }

  /// A receiver that reports the same arrival for all packets makes a slice of any size.
  @Test func aSliceOfAnySizeHasARate() throws {
    var rate = AcknowledgedRate()
    for time: Microseconds in 0..<30 {
      for _ in 0..<2 { rate.arrived(at: time * 20 * .millisecond, size: .max >> 8) }
    }
    rate.update()
    #expect(try #require(rate.value) > 1 << 40)
  }
}

import Seeded
import Testing

@testable import CongestionControl

/// A receiver that reports a rate and its loss, but no packets (REMB).
struct ReportedRateTests {
  private static let second = Microseconds.second

  private var estimator = RateEstimator(now: 0, reportsRateAlone: true)
  private var now: Microseconds = 0

  /// Reports `rate` twice a second.
  private mutating func run(_ seconds: Int, _ rate: (Microseconds) -> Int) {
    for step in 0..<(20 * seconds) {
      now += 50 * .millisecond
      if step % 10 == 9 { estimator.remb(rate(now), now: now) }
      estimator.tick(now: now)
    }
  }

  @Test mutating func theFirstEstimatesBoundNothing() {
    run(3) { 400_000 + Int($0 / 100) }
    #expect(estimator.target == RateEstimator.Configuration().maximum)
  }

  @Test mutating func aFirstEstimateFarBelowTheStreamsIsABound() {
    estimator.demand.allocated = 1_000_000
    run(1) { _ in 800_000 }
    #expect(estimator.target == 800_000)
  }

  @Test mutating func theTargetIsTheReceiversRate() {
    fall()
    run(2) { _ in 400_000 }
    #expect(estimator.target == 400_000 && estimator.proven(now: now) == 400_000)
    run(2) { _ in 900_000 }
    #expect(estimator.target == 900_000)
  }

  private mutating func fall() { run(1) { $0 < 600_000 ? 2_000_000 : 300_000 } }

  @Test mutating func noRateIsBelowWhatAudioNeeds() {
    fall()
    run(1) { _ in 0 }
    #expect(estimator.target == RateEstimator.Configuration().minimum)
  }

  /// The receiver's estimate would never reach the next layer by itself.
  @Test mutating func aLayerBeyondTheEstimateIsTriedAndKept() {
    fall()
    run(6) { _ in 300_000 }
    estimator.demand = RateDemand(allocated: 200_000, nextStep: 500_000, wished: 1_700_000)
    estimator.tick(now: now)
    #expect(estimator.target > 500_000)
    let start = now
    run(4) { 300_000 + 24_000 * Int(($0 - start) / Self.second) }
    #expect(estimator.target > 500_000)
    // It ends with the next drop of the estimate.
    estimator.demand = RateDemand(allocated: 500_000, nextStep: nil, wished: 1_700_000)
    run(1) { _ in 250_000 }
    #expect(estimator.target == 250_000)
  }

  @Test mutating func trialsThatFailBecomeRare() {
    fall()
    run(6) { _ in 300_000 }
    estimator.demand = RateDemand(allocated: 200_000, nextStep: 500_000, wished: 1_700_000)
    var raised = 0
    var wasHigh = false
    for _ in 0..<180 {
      run(1) { _ in 300_000 }
      let isHigh = estimator.target > 500_000
      if isHigh, !wasHigh { raised += 1 }
      wasHigh = isHigh
    }
    // After 10, 20, 40 and 60 s.
    #expect((4...6).contains(raised), "\(raised) trials in three minutes")
  }

  @Test mutating func heavyLossLowersTheTargetOnceASecond() {
    fall()
    run(2) { _ in 1_000_000 }
    for _ in 0..<10 { estimator.reported(lost: 0.2, now: now) }
    #expect(estimator.target == 900_000)
    run(1) { _ in 1_000_000 }
    #expect(estimator.target == 900_000, "the cap holds although the receiver's rate is higher")
    estimator.reported(lost: 0.05, now: now)
    #expect(estimator.target == 900_000)
    run(4) { _ in 1_000_000 }
    #expect(estimator.target == 1_000_000)
  }

  @Test func lossSaysNothingBesideReportsOnPackets() {
    var estimator = RateEstimator(now: 0)
    estimator.reported(lost: 0.9, now: Self.second)
    #expect(estimator.target == RateEstimator.Configuration().start)
  }

  /// An attacker's rates and losses.
  @Test(arguments: [81, 82, 83] as [UInt64]) func nonsenseNeitherTrapsNorLeavesTheBounds(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var estimator = RateEstimator(now: 0, reportsRateAlone: true)
    let bounds = RateEstimator.Configuration().minimum...RateEstimator.Configuration().maximum
    for step in 0..<20_000 as Range<Int64> {
      let now = step * 20 * .millisecond
      // REMB has up to 58 bits here.
      if random.uniform() < 0.5 { estimator.remb(Int(random.next() >> (6 + random.next() % 50)), now: now) }
      if random.uniform() < 0.2 { estimator.reported(lost: random.uniform(), now: now) }
      if random.uniform() < 0.1 {
        let next = random.uniform() < 0.5 ? Int(random.next() % 5_000_000) : nil
        estimator.demand = RateDemand(allocated: Int(random.next() % 5_000_000), nextStep: next, wished: 5_000_000)
      }
      estimator.tick(now: now)
      #expect(bounds.contains(estimator.target) && bounds.contains(estimator.proven(now: now)))
    }
  }
}

import CAllocations
import Seeded
import Testing

@testable import CongestionControl

struct RateEstimatorTests {
  /// Sends for some time at a rate, and reports every 50 ms with a delay.
  private struct Path {
    var estimator = RateEstimator(now: 0)
    var now: Microseconds = 0
    var number: UInt16 = 65_000
    var unreported: [UInt16] = []
    /// µs from departure to arrival.
    var delay: Microseconds = 20 * millisecond
    var lost: (Int) -> Bool = { _ in false }
    var reports = true

    /// 1,200-byte packets 10 ms apart: 960 kbit/s.
    mutating func run(_ time: Microseconds, delay change: (Microseconds) -> Microseconds = { $0 }) {
      let end = now + time
      var due = now + 50 * millisecond
      var arrivals: [Microseconds] = []
      while now < end {
        estimator.sent(number, size: 1_200, kind: .video, probe: 0, now: now)
        unreported.append(number)
        delay = change(delay)
        arrivals.append(now + delay)
        number &+= 1
        now += 10 * millisecond
        if now >= due {
          due = now + 50 * millisecond
          if reports {
            for (i, number) in unreported.enumerated() {
              if lost(Int(number)) {
                estimator.missing(number, now: now)
              } else {
                estimator.received(number, arrival: arrivals[i], now: now)
              }
            }
            estimator.endReport(now: now)
          }
          unreported.removeAll()
          arrivals.removeAll()
        }
        estimator.tick(now: now)
      }
    }
  }

  @Test func aQueueThatGrowsLowersTheTargetBelowWhatArrives() {
    var path = Path()
    path.run(3 * second)
    let before = path.estimator.target
    // Each packet waits 4 ms longer: the link carries 5/7 of what is sent, 686 kbit/s.
    path.run(second) { $0 + 4 * millisecond }
    #expect(path.estimator.isCongested)
    #expect(path.estimator.target < min(before, 686_000))
    #expect(path.estimator.target > 200_000)
  }

  /// The key frame of a new layer causes a queue for a moment. A probe has shown that the path drains it.
  @Test(arguments: [true, false]) func aQueueThatTheProbedRateDrainsUndoesNoStep(isDrained: Bool) {
    var path = Path()
    path.run(3 * second)
    path.estimator.target = 2_200_000
    path.estimator.probed = (2_200_000, path.now)
    path.estimator.demand = RateDemand(allocated: 2_000_000, nextStep: nil, wished: 2_000_000)
    path.run(100 * millisecond)
    path.run(400 * millisecond) { _ in 105 * millisecond }
    #expect(path.estimator.target >= 2_200_000)
    path.run(second) { _ in isDrained ? 20 * millisecond : 105 * millisecond }
    #expect((path.estimator.target >= 2_200_000) == isDrained)
  }

  @Test func belowAnUpperBoundByLossProbesGoOn() throws {
    var path = Path()
    path.run(3 * second)
    path.lost = { $0 % 2 == 0 }
    path.run(3 * second)
    path.lost = { _ in false }
    // A queue also builds up, and lowers the target to a fraction of the bound.
    path.run(1_500 * millisecond) { $0 + 6 * millisecond }
    path.run(2 * second) { max(20 * millisecond, $0 - 30 * millisecond) }
    let bound = try #require(path.estimator.lossBound.last)
    #expect(bound.until > path.now && path.estimator.target <= bound.rate)
    path.estimator.target = 120_000
    path.estimator.demand = RateDemand(allocated: 100_000, nextStep: bound.rate, wished: 2_000_000)
    #expect(path.estimator.probe(now: path.now) == nil, "no step beyond the bound is tried")
    path.estimator.demand.nextStep = bound.rate / 2
    let ordered = path.estimator.probe(now: path.now)
    let order = try #require(ordered)
    #expect(order.rate <= bound.rate)
  }

  @Test func lossWithoutAQueueIsThePathsOwn() {
    var path = Path()
    path.run(3 * second)
    let before = path.estimator.target
    path.lost = { $0 % 10 == 0 }
    path.run(10 * second)
    #expect(path.estimator.target >= before)
    #expect((0.08...0.12).contains(path.estimator.lossRate))
  }

  @Test func lossOfMoreThanAThirdIsCongestionWithoutAQueueToo() {
    var path = Path()
    path.run(3 * second)
    path.lost = { $0 % 2 == 0 }
    path.run(3 * second)
    #expect(path.estimator.target <= 600_000)
  }

  /// 960 kbit/s from the first packet on, a fifth is lost, and there is no queue: nothing tells whether a lower rate
  /// would lose less.
  @Test func muchLossWithoutAnExplanationIsComparedWithThatOfALowerRate() throws {
    var path = Path()
    path.lost = { $0 % 5 == 0 }
    path.run(4 * second)
    let bound = try #require(path.estimator.lossBound.last)
    #expect((400_000...700_000).contains(bound.rate))
    #expect(path.estimator.target <= bound.rate)
    // The loss stays the same, so it is inherent to the path, and the rate is not lowered again.
    path.run(60 * second)
    #expect(try #require(path.estimator.lossBound.last).until == bound.until)
    path.estimator.pathChanged()
    path.run(4 * second)
    #expect(path.estimator.lossBound.last != nil)
  }

  /// A policer lets bursts pass, so that a bound may be above its rate.
  @Test func aBoundBelowWhichAsMuchIsLostFalls() throws {
    var path = Path()
    path.run(3 * second)
    path.lost = { $0 % 2 == 0 }
    path.run(2_500 * millisecond)
    let first = try #require(path.estimator.lossBound.last)
    path.run(3 * second)
    let lowered = try #require(path.estimator.lossBound.last)
    #expect(lowered.rate < first.rate / 100 * 90 && lowered.until == first.until)
  }

  /// The bound would be the rate of audio only, and streams for which there is room would pause as long as it holds.
  /// Half of the 960 kbit/s passes.
  @Test(arguments: [(false, 200_000), (true, 200_000), (true, 700_000)])
  func lossSetsNoBoundThatKeepsStreamsPausedInVain(isPaused: Bool, nextStep: Int) {
    var path = Path()
    path.run(3 * second)
    path.lost = { $0 % 2 == 0 }
    path.estimator.demand = RateDemand(allocated: 100_000, nextStep: nextStep, wished: 2_000_000, isPaused: isPaused)
    path.run(3 * second)
    #expect((path.estimator.lossBound.last == nil) == (isPaused && nextStep == 200_000))
  }

  @Test func silenceHalvesTheTargetAndReportsBringItBack() {
    var path = Path()
    path.run(3 * second)
    let before = path.estimator.target
    path.reports = false
    path.run(3 * second)
    #expect(path.estimator.target < before / 8)
    path.reports = true
    path.run(200 * millisecond)
    #expect(path.estimator.target >= before / 10 * 7)
  }

  @Test func aReceiversBoundHoldsForFiveSeconds() {
    var path = Path()
    path.run(3 * second)
    path.estimator.remb(200_000, now: path.now)
    #expect(path.estimator.target == 200_000)
    path.run(second)
    #expect(path.estimator.target == 200_000)
  }

  /// Reports of an attacker: numbers that were never sent, all numbers again and again, arbitrary times.
  @Test(arguments: [71, 72, 73] as [UInt64])
  func nonsenseNeitherTrapsNorRaisesTheTarget(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var estimator = RateEstimator(now: 0)
    var highest = 0
    var number: UInt16 = 0
    for step in 0..<20_000 as Range<Int64> {
      let now = step * 5 * millisecond
      if random.uniform() < 0.5 {
        estimator.sent(
          number, size: Int(random.next() % 70_000), kind: .video, probe: UInt8(random.next() % 3), now: now)
        number &+= 1
      }
      let arrivals: [Microseconds] = [
        .min, .max, 0, -1, 1 << 55, -(1 << 55), now, Microseconds(bitPattern: random.next()) >> 8,
      ]
      for _ in 0..<random.next() % 20 {
        let reported = UInt16(truncatingIfNeeded: random.next())
        if random.uniform() < 0.5 {
          estimator.received(reported, arrival: arrivals.randomElement(using: &random)!, now: now)
        } else {
          estimator.missing(reported, now: now)
        }
      }
      estimator.endReport(now: now)
      estimator.tick(now: now)
      estimator.remb(Int(bitPattern: UInt(truncatingIfNeeded: random.next())), now: now)
      highest = max(highest, estimator.target)
    }
    #expect(highest <= RateEstimator.Configuration().maximum)
    #expect(estimator.target >= RateEstimator.Configuration().minimum)
  }

  /// A packet that is reported ten times counts once.
  @Test func aReportThatIsRepeatedCountsOnce() {
    var path = Path()
    path.run(3 * second)
    let rate = path.estimator.acknowledgedRate
    for _ in 0..<10 {
      for back in 1...100 as ClosedRange<UInt16> {
        path.estimator.received(path.number &- back, arrival: path.now, now: path.now)
      }
      path.estimator.endReport(now: path.now)
    }
    #expect(path.estimator.acknowledgedRate == rate)
  }

  /// Two reports that overtook each other: the later numbers are read first.
  @Test func reportsInDisorderCountEachPacketOnce() throws {
    func rate(inDisorder: Bool) throws -> Int {
      var estimator = RateEstimator(now: 0)
      for i in 0..<400 as Range<Int64> {
        let now = i * 10 * millisecond
        estimator.sent(UInt16(i), size: 1_200, kind: .video, probe: 0, now: now)
        guard i % 20 == 19 else { continue }
        let numbers = Array(UInt16(i - 19)...UInt16(i))
        for number in inDisorder ? numbers[10...] + numbers[..<10] : numbers[...] {
          estimator.received(number, arrival: Int64(number) * 10 * millisecond + 20 * millisecond, now: now)
        }
        estimator.endReport(now: now)
      }
      return try #require(estimator.acknowledgedRate)
    }
    // 1,200 bytes in 10 ms are 960 kbit/s. Assumed packets have an estimated arrival.
    let inOrder = try rate(inDisorder: false)
    #expect((900_000...1_000_000).contains(inOrder))
    #expect(try abs(rate(inDisorder: true) - inOrder) < 60_000)
  }

  /// A receiver that alternately reports the newest and the oldest number would otherwise cause a walk over the whole
  /// history each time.
  @Test func theGapNeverBeginsAgainAtAnOlderNumber() {
    var estimator = RateEstimator(now: 0)
    for number in 0..<4_000 as Range<UInt16> {
      estimator.sent(number, size: 1_200, kind: .video, probe: 0, now: Int64(number) * millisecond)
    }
    for i in 0..<1_000 as Range<UInt16> {
      estimator.received(3_000 + i, arrival: 5 * second, now: 5 * second)
      estimator.received(i, arrival: 5 * second, now: 5 * second)
      estimator.missing(1_000 + i, now: 5 * second)
      #expect(estimator.lastReported == 3_000 + i)
    }
    // A number that has not been sent does not move it either.
    estimator.received(4_000, arrival: 5 * second, now: 5 * second)
    #expect(estimator.lastReported == 3_999)
  }

  @Test(.enabled(if: isRelease && allocations_are_counted())) func thePacketPathAllocatesNothing() {
    var estimator = RateEstimator(now: 0)
    var pacer = Pacer(now: 0)
    func run(_ packets: Range<Int64>) {
      for i in packets {
        let now = i * millisecond
        let number = UInt16(truncatingIfNeeded: i)
        let packet = PacedPacket(
          index: UInt64(i), size: 1_200, frame: UInt16(truncatingIfNeeded: i / 3), slot: 0, kind: .video)
        if pacer.offer(packet, rate: estimator.pacingRate, now: now) == .passes { pacer.sent(bytes: 1_200) }
        while pacer.next(rate: estimator.pacingRate, now: now) != nil { pacer.sent(bytes: 1_200) }
        estimator.sent(number, size: 1_200, kind: .video, probe: 0, now: now)
        if i % 7 == 0 {
          estimator.missing(number, now: now)
        } else {
          estimator.received(number, arrival: now + 1, now: now)
        }
        if i % 50 == 0 {
          estimator.endReport(now: now)
          estimator.tick(now: now)
          estimator.demand = RateDemand(allocated: 1_000_000, nextStep: 20_000_000, wished: 30_000_000)
          _ = estimator.probe(now: now)
        }
      }
    }
    run(0..<2_000)
    let before = allocations_of_this_thread()
    run(2_000..<20_000)
    #expect(allocations_of_this_thread() == before)
  }
}

private let isRelease: Bool = {
  #if DEBUG
    false
  #else
    true
  #endif
}()

import MediaModel
import Testing

@testable import MediaPlane

struct SheddingRuleTests {
  /// A thread that reads its socket every 10 ms.
  private struct Run {
    var rule = SheddingRule()
    private var millisecond: UInt64 = 1_000
    private var cpu: UInt64 = 0

    /// - Parameters:
    ///   - age: of the datagrams, in milliseconds.
    ///   - usage: of the processor, in percent.
    mutating func run(milliseconds: UInt64, age: Int64, usage: UInt64 = 100) {
      for _ in 0..<milliseconds / 10 {
        millisecond += 10
        cpu += usage * 100_000
        let now = Instant(nanoseconds: millisecond * 1_000_000)
        rule.received(after: .milliseconds(age))
        if rule.isDue(now: now) { _ = rule.judge(cpuTime: cpu, now: now) }
      }
    }
  }

  @Test func packetsThatGrowOldShedVideoAtOnce() {
    var run = Run()
    run.run(milliseconds: 200, age: 50)
    #expect(run.rule.share == 0.75)
    run.run(milliseconds: 150, age: 120)
    #expect(run.rule.share == 0.375)
    run.run(milliseconds: 2_000, age: 300)
    #expect(run.rule.share == 0)
  }

  @Test func aBurstShedsNothing() {
    var run = Run()
    for _ in 0..<20 {
      run.run(milliseconds: 50, age: 60)
      run.run(milliseconds: 100, age: 1)
    }
    #expect(run.rule.share == 1)
  }

  /// Another program has the processor: less work would not help much.
  @Test func aDisplacedThreadShedsOnlyWhenPacketsAreVeryLate() {
    var run = Run()
    run.run(milliseconds: 3_000, age: 200, usage: 50)
    #expect(run.rule.share == 1)
    run.run(milliseconds: 150, age: 260, usage: 50)
    #expect(run.rule.share == 0.5)
  }

  @Test func videoComesBackInSteps() {
    var run = Run()
    run.run(milliseconds: 200, age: 50)
    run.run(milliseconds: 1_900, age: 1)
    #expect(run.rule.share == 0.75)
    run.run(milliseconds: 200, age: 1)
    #expect(abs(run.rule.share - 0.85) < 0.001)
    run.run(milliseconds: 2_100, age: 20)
    #expect(abs(run.rule.share - 0.85) < 0.001, "there is no time for more")
    run.run(milliseconds: 4_200, age: 1)
    #expect(run.rule.share == 1)
  }

  /// At a constant overload the share is tried less and less often, also where the worker lacks little.
  @Test(arguments: [0.8, 0.99]) func stepsThatWereTooMuchAreTriedLessOften(capacity: Double) {
    var run = Run()
    run.run(milliseconds: 200, age: 50)
    var cuts = 0
    for _ in 0..<2_400 {
      let before = run.rule.share
      run.run(milliseconds: 100, age: before > capacity ? 50 : 1)
      if run.rule.share < before { cuts += 1 }
    }
    #expect(4...8 ~= cuts, "in 240 s: \(cuts)")
  }

  @Test func aLaterOverloadIsANewOne() {
    var run = Run()
    for _ in 0..<3 {
      run.run(milliseconds: 200, age: 50)
      #expect(run.rule.share == 0.75)
      run.run(milliseconds: 7_000, age: 1)
      #expect(run.rule.share == 1)
      run.run(milliseconds: 60_000, age: 1)
    }
  }
}

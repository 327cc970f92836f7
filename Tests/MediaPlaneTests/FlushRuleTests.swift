import MediaModel
import Testing

@testable import MediaPlane

struct FlushRuleTests {
  private func at(_ microseconds: UInt64) -> Instant { Instant(nanoseconds: 2_000_000_000 + microseconds * 1_000) }

  /// A rule that has seen batches at these times, with nothing to send. Before, its thread worked for `work` of each
  /// 1,000 µs.
  private func rule(afterBatchesAt times: [UInt64], working work: UInt64 = 500) -> FlushRule {
    var rule = rule(working: work, flush: 1)
    for time in times { rule.arrived(now: at(time)) }
    return rule
  }

  @Test func anEmptyOutboxIsNeverDue() {
    var rule = rule(afterBatchesAt: [0, 10])
    let due = rule.isDue(now: at(10), isEmpty: true, isUrgent: false)
    #expect(!due)
    #expect(rule.deadline == nil)
  }

  @Test(arguments: [[0], [0, 1_000], [0, 10, 5_000]])
  func aQuietSocketHoldsNothing(batches: [UInt64]) {
    var rule = rule(afterBatchesAt: batches)
    let due = rule.isDue(now: at(batches.last ?? 0), isEmpty: false, isUrgent: false)
    #expect(due)
  }

  @Test func videoOfABusySocketWaitsAMillisecond() {
    var rule = rule(afterBatchesAt: [0, 100])
    let due = [UInt64(100), 400, 1_099, 1_100].map { time in
      rule.arrived(now: at(time))
      return rule.isDue(now: at(time), isEmpty: false, isUrgent: false)
    }
    #expect(due == [false, false, false, true])
    #expect(rule.deadline == at(1_100))
  }

  /// A millisecond at a quarter of the processor's time. Less than 0.1 ms is not worth a wake-up.
  @Test(arguments: [(UInt64(10), 0), (20, 0), (50, 200), (125, 500), (240, 960), (300, 1_000)])
  func theLessAThreadWorksTheShorterVideoWaits(work: UInt64, microseconds: Int) {
    var rule = rule(afterBatchesAt: [0, 100], working: work)
    let due = rule.isDue(now: at(100), isEmpty: false, isUrgent: false)
    #expect(due == (microseconds == 0))
    let hold = rule.deadline.map { at(100).duration(to: $0) } ?? .zero
    #expect(abs(hold.nanoseconds / 1_000 - Int64(microseconds)) < 50)
  }

  /// 600 of each 1,000 µs go to datagrams, of which all but a tenth are from a dropped flood: 6 % of the thread's time
  /// remains.
  @Test func aFloodThatIsDroppedIsNoLoadForWhichOthersWait() {
    func hold(kept: Int) -> Int64 {
      var rule = FlushRule()
      for millisecond in UInt64(0)..<2_000 {
        rule.woke(now: at(1_000 * millisecond + 400))
        rule.handled(kept: kept, of: 100)
        rule.waits(now: at(1_000 * (millisecond + 1)))
      }
      let now: UInt64 = 2_000_000
      for time in [now, now + 100] { rule.arrived(now: at(time)) }
      _ = rule.isDue(now: at(now + 100), isEmpty: false, isUrgent: false)
      return rule.deadline.map { at(now + 100).duration(to: $0).nanoseconds / 1_000 } ?? 0
    }
    #expect(hold(kept: 100) == 1_000)
    #expect((200..<280).contains(hold(kept: 10)))
    #expect(hold(kept: 0) == 0)
  }

  @Test func theDeadlineHoldsWithoutFurtherPackets() {
    var rule = rule(afterBatchesAt: [0, 100])
    _ = rule.isDue(now: at(100), isEmpty: false, isUrgent: false)
    let due = rule.isDue(now: at(1_100), isEmpty: false, isUrgent: false)
    #expect(due)
  }

  @Test func urgentPacketsTakeTheHeldOnesAlong() {
    var rule = rule(afterBatchesAt: [0, 100])
    _ = rule.isDue(now: at(100), isEmpty: false, isUrgent: false)
    let due = rule.isDue(now: at(150), isEmpty: false, isUrgent: true)
    #expect(due)
  }

  @Test func eachHoldBeginsAfresh() {
    var rule = rule(afterBatchesAt: [0, 100])
    _ = rule.isDue(now: at(100), isEmpty: false, isUrgent: false)
    rule.flushed(in: .microseconds(10), runs: 10)
    #expect(rule.deadline == nil)
    rule.arrived(now: at(600))
    _ = rule.isDue(now: at(600), isEmpty: false, isUrgent: false)
    #expect(rule.deadline == at(1_600))
  }

  /// A rule whose thread worked for `work` of each 1,000 µs in the second before `at(0)`, and whose flushes took `flush` µs.
  private func rule(working work: UInt64, flush: Int, runs: Int = 10_000) -> FlushRule {
    var rule = FlushRule()
    for turn in UInt64(0)..<1_000 {
      let start = Instant(nanoseconds: 1_000_000_000 + turn * 1_000_000)
      rule.woke(now: start)
      rule.flushed(in: .microseconds(flush), runs: runs)
      rule.waits(now: start.advanced(by: .microseconds(Int64(work))))
    }
    return rule
  }

  private func hold(of rule: FlushRule) -> Duration {
    var rule = rule
    let isDue = rule.isDue(now: at(0), isEmpty: false, isUrgent: true)
    #expect(isDue == (rule.deadline == nil))
    return rule.deadline.map { at(0).duration(to: $0) } ?? .zero
  }

  @Test(arguments: [UInt64(100), 500, 900])
  func audioWaitsAsLongAsAFlushTakesTimesTheLoad(work: UInt64) {
    let rule = rule(working: work, flush: 3_000)
    #expect(abs(rule.load - Double(work) / 1_000) < 0.02)
    let expected = 3.0 * Double(work)
    #expect(abs(Double(hold(of: rule).nanoseconds) / 1_000 - expected) < 100)
  }

  @Test func audioWaitsFiveMillisecondsAtMost() {
    #expect(hold(of: rule(working: 950, flush: 50_000)) == .milliseconds(5))
  }

  @Test(arguments: [(UInt64(0), 5_000), (950, 90)])
  func anIdleThreadAndASmallCallHoldNoAudio(work: UInt64, flush: Int) {
    #expect(hold(of: rule(working: work, flush: flush)) == .zero)
  }

  /// Nine runs alone do not take 2 ms: another program had the core.
  @Test func aFlushThatWasInterruptedHoldsNoAudio() {
    #expect(hold(of: rule(working: 950, flush: 2_000, runs: 9)) == .zero)
  }

  @Test func audioShortensTheHoldOfVideoAndDoesNotRenewIt() {
    var rule = rule(working: 500, flush: 1_000)
    rule.arrived(now: at(0))
    rule.arrived(now: at(100))
    _ = rule.isDue(now: at(100), isEmpty: false, isUrgent: false)
    #expect(rule.deadline == at(1_100))
    _ = rule.isDue(now: at(200), isEmpty: false, isUrgent: true)
    let shortened = rule.deadline
    #expect(shortened.map { $0 < at(1_100) } == true)
    _ = rule.isDue(now: at(300), isEmpty: false, isUrgent: true)
    #expect(rule.deadline == shortened)
  }
}

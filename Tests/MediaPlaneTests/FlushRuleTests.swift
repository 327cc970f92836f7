import MediaModel
import Testing

@testable import MediaPlane

struct FlushRuleTests {
  private func at(_ microseconds: UInt64) -> Instant { Instant(nanoseconds: 1_000_000_000 + microseconds * 1_000) }

  /// A rule that saw batches at these times, with nothing to send.
  private func rule(afterBatchesAt times: [UInt64]) -> FlushRule {
    var rule = FlushRule()
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
    rule.flushed()
    #expect(rule.deadline == nil)
    rule.arrived(now: at(600))
    _ = rule.isDue(now: at(600), isEmpty: false, isUrgent: false)
    #expect(rule.deadline == at(1_600))
  }
}

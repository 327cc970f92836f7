import MediaModel
import Testing

@testable import MediaPlane

struct NapRuleTests {
  private func at(_ microseconds: UInt64) -> Instant { Instant(nanoseconds: microseconds * 1_000) }

  /// Columns: datagrams in the second batch, microseconds after the first, whether a nap pays.
  static let batches: [(Int, UInt64, Bool)] = [
    (1, 125, true), (1, 126, false), (2, 250, true), (5, 1_000, false), (64, 8_000, true), (1, 0, true),
  ]

  @Test(arguments: batches)
  func napsWhenTwoOrMoreCanBeExpected(count: Int, gap: UInt64, naps: Bool) {
    var rule = NapRule()
    rule.arrived(50, now: at(1_000))
    #expect(!rule.isDue)
    rule.arrived(count, now: at(1_000 + gap))
    #expect(rule.isDue == naps)
  }

  @Test func aNapIsTakenOnce() {
    var rule = NapRule()
    rule.arrived(1, now: at(0))
    rule.arrived(1, now: at(10))
    rule.taken()
    #expect(!rule.isDue)
  }

  @Test func hugeNumbersDoNotTrap() {
    var rule = NapRule()
    rule.arrived(1, now: at(5))
    rule.arrived(.max, now: at(1))
    #expect(rule.isDue)
  }
}

import Octets
import Seeded
import Testing

struct ReplayWindowTests {
  @Test func takesEachNumberOnce() {
    var window = ReplayWindow()
    for (number, expected) in [
      (70_000, .new), (70_000, .seen), (70_003, .new), (70_001, .new), (70_001, .seen), (70_002, .new),
    ] as [(UInt64, ReplayWindow.Arrival)] {
      #expect(insert(number, into: &window) == expected)
    }
    #expect(window.highest == 70_003)
  }

  @Test func forgetsWhatIsAWindowBehind() {
    var window = ReplayWindow()
    for (number, expected) in [
      (70_000, .new), (70_000 + ReplayWindow.size - 1, .new), (70_000, .seen), (70_000 + ReplayWindow.size, .new),
      (70_000, .late), (90_000, .new), (89_999, .new), (90_000 - 1024, .late), (90_000 - 1023, .new),
    ] as [(UInt64, ReplayWindow.Arrival)] {
      #expect(insert(number, into: &window) == expected, "\(number)")
    }
  }

  @Test func aWindowThatStartsAtANumberTakesItOnce() {
    var window = ReplayWindow(startingAt: 500)
    #expect(window.highest == 500)
    #expect(insert(500, into: &window) == .new)
    #expect(insert(500, into: &window) == .seen)
    #expect(insert(499, into: &window) == .new)
  }

  @Test func aLookRecordsNothing() {
    var window = ReplayWindow()
    #expect(window.arrival(of: 9) == .new)
    #expect(window.arrival(of: 9) == .new)
    #expect(window.highest == nil)
  }

  /// Compared with a set of everything seen, over random numbers with jumps.
  @Test(arguments: [77, 78, 79] as [UInt64])
  func agreesWithAModel(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var window = ReplayWindow()
    var seen: Set<UInt64> = []
    var highest: UInt64 = 0
    var counts = (new: 0, seen: 0, late: 0)
    for _ in 0..<50_000 {
      let jump = UInt64.random(in: 0..<50, using: &random) == 0 ? UInt64.random(in: 0..<3000, using: &random) : 3
      let base = highest + jump
      let number = base - min(base, UInt64.random(in: 0..<1100, using: &random))
      let expected: ReplayWindow.Arrival =
        seen.isEmpty || number > highest
        ? .new : highest - number >= 1024 ? .late : seen.contains(number) ? .seen : .new
      #expect(window.arrival(of: number) == expected, "seed \(seed), number \(number)")
      switch expected {
      case .new: counts.new += 1
      case .seen: counts.seen += 1
      case .late: counts.late += 1
      }
      guard expected == .new else { continue }
      window.record(number)
      seen.insert(number)
      highest = max(highest, number)
    }
    #expect(counts.new > 1000 && counts.seen > 1000 && counts.late > 100)
  }

  private func insert(_ number: UInt64, into window: inout ReplayWindow) -> ReplayWindow.Arrival {
    let arrival = window.arrival(of: number)
    if arrival == .new { window.record(number) }
    return arrival
  }
}

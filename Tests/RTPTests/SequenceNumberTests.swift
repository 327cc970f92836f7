import RTP
import Seeded
import Testing

struct SequenceNumberTests {
  static let distances: [(UInt16, UInt16, Int)] = [
    (10, 12, 2), (12, 10, -2), (65_535, 0, 1), (0, 65_535, -1), (0, 32_767, 32_767), (0, 32_768, -32_768), (7, 7, 0),
  ]

  @Test(arguments: distances)
  func distance(from a: UInt16, to b: UInt16, is expected: Int) {
    #expect(SequenceNumber.distance(from: a, to: b) == expected)
    #expect(SequenceNumber.isNewer(b, than: a) == (expected > 0))
  }

  @Test func unwrapsForwardsAndBackwardsOverTheEnd() {
    var unwrapper = SequenceUnwrapper()
    #expect(unwrapper.unwrap(65_534) == 131_070)
    #expect(unwrapper.unwrap(1) == 131_073)
    #expect(unwrapper.unwrap(65_535) == 131_071)
    #expect(unwrapper.highest == 131_073)
  }

  @Test func firstNumberLeavesRoomForOlderOnes() {
    var unwrapper = SequenceUnwrapper()
    #expect(unwrapper.unwrap(0) == 65_536)
    #expect(unwrapper.unwrap(40_000) == 65_536 - 25_536)
    #expect(unwrapper.highest == 65_536)
  }

  @Test func speakingOfANumberMovesNothing() {
    var unwrapper = SequenceUnwrapper()
    _ = unwrapper.unwrap(100)
    #expect(unwrapper.index(of: 200) == 65_736)
    #expect(unwrapper.highest == 65_636)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func followsAnyWalkOfSmallSteps(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var unwrapper = SequenceUnwrapper()
    var index = UInt64(65_536 + UInt64.random(in: 0...65_535, using: &generator))
    #expect(unwrapper.unwrap(UInt16(truncatingIfNeeded: index)) == index)
    var highest = index
    var wrong = 0
    for _ in 0..<20_000 {
      index = UInt64(Int64(highest) + Int64.random(in: -500...1_000, using: &generator))
      highest = max(highest, index)
      if unwrapper.unwrap(UInt16(truncatingIfNeeded: index)) != index { wrong += 1 }
    }
    #expect(wrong == 0)
  }
}

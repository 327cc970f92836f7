import MediaModel
import Testing

@testable import Forwarding

struct NackGeneratorTests {
  private func due(_ nacks: inout NackGenerator, _ milliseconds: UInt64) -> [UInt16] {
    var missing = InlineArray<256, UInt16>(repeating: 0)
    let count = nacks.takeDue(instant(milliseconds), retry: .milliseconds(50), into: missing.mutableSpan)
    return (0..<count).map { missing[$0] }
  }

  @Test func asksForAHoleAfterTheTolerance() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_603, due: instant(10)) == true)
    #expect(nacks.deadline == instant(10))
    #expect(due(&nacks, 9).isEmpty)
    #expect(due(&nacks, 10) == [65, 66])
    #expect(nacks.deadline == instant(60))
  }

  @Test func neverAsksForWhatCame() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_603, due: instant(10)) == true)
    nacks.arrived(65_601)
    #expect(due(&nacks, 10) == [66])
    nacks.arrived(65_602)
    #expect(nacks.deadline == nil)
    #expect(due(&nacks, 100).isEmpty)
  }

  @Test func givesUpAfterTenTries() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_602, due: instant(0)) == true)
    var asked = 0
    for i in 0..<100 as Range<UInt64> where !due(&nacks, i * 50).isEmpty { asked += 1 }
    #expect(asked == NackGenerator.maximumTries)
    #expect(nacks.count == 0)
    #expect(nacks.takeGivenUp() == 65_601)
    #expect(nacks.takeGivenUp() == nil)
  }

  @Test func aHoleThatIsFilledIsNotGivenUp() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_602, due: instant(0)) == true)
    for i in 0..<10 as Range<UInt64> { #expect(due(&nacks, i * 50) == [65]) }
    nacks.arrived(65_601)
    #expect(due(&nacks, 1000).isEmpty)
    #expect(nacks.takeGivenUp() == nil)
  }

  @Test func isBounded() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 75_000, due: instant(0)) == false)
    var highest: UInt64 = 65_600
    for _ in 0..<20 {
      _ = nacks.jumped(from: highest, to: highest + 100, due: instant(0))
      highest += 100
      #expect(nacks.count <= NackGenerator.capacity)
    }
  }
}

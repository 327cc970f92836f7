import Contract
import Testing

@testable import Calls

struct SimulatedWorldTests {
  /// Each seed is a world of its own; the one that fails is printed with what led to it.
  @Test(arguments: 0..<10) func theRulesHoldWhateverHappens(batch: UInt64) {
    var counts: [EventName: Int] = [:]
    var causes: [MemberCause: Int] = [:]
    for seed in batch * 50..<(batch + 1) * 50 {
      let world = SimulatedWorld(seed: seed)
      if let failure = world.run(steps: 100) {
        Issue.record("seed \(seed): \(failure)")
        return
      }
      counts.merge(world.invariants.counts, uniquingKeysWith: +)
      causes.merge(world.invariants.causes, uniquingKeysWith: +)
    }
    // A world in which nothing happens proves nothing.
    let elsewhere: Set<EventName> = [
      .mediaSlots, .mediaNeed, .pushRing, .pushCancel, .report,
    ]
    let seldom = EventName.allCases.filter { counts[$0, default: 0] == 0 && !elsewhere.contains($0) }
    #expect(seldom.isEmpty)
    #expect(MemberCause.allCases.filter { causes[$0, default: 0] < 5 }.isEmpty)
  }
}

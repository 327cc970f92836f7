import Testing

@testable import Forwarding

/// Members who do all that was ever found to do harm, at random, beside honest people in the same call and in another of the same worker.
struct HostileWorldTests {
  private static let seeds: UInt64 = isRelease ? 500 : 10

  @Test(arguments: 0..<10 as Range<UInt64>)
  func honestPeopleHearAndSeeEachOtherWhateverOthersSend(part: UInt64) throws {
    for seed in part * Self.seeds / 10..<(part + 1) * Self.seeds / 10 {
      if let harm = try HostileWorld.harm(seed: seed) { Issue.record("\(harm)") }
    }
  }

  /// Each strategy by itself, so that a failure has a name.
  @Test(arguments: HostileStrategy.enabled.map(\.name)) func noStrategyHarmsByItself(name: String) throws {
    let strategies = HostileStrategy.enabled.filter { $0.name == name }
    for seed in (isRelease ? [2, 3] : [2]) as [UInt64] {
      if let harm = try HostileWorld.harm(seed: seed, strategies: strategies) { Issue.record("\(harm)") }
    }
  }
}

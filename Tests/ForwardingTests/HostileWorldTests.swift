import MediaModel
import Testing

@testable import Forwarding

/// Members who randomly do everything that was ever found to do harm, together with honest people in the same call and
/// in another call of the same worker.
struct HostileWorldTests {
  private static let seeds: UInt64 = isRelease ? 500 : 10

  @Test(arguments: 0..<10 as Range<UInt64>)
  func honestPeopleHearAndSeeEachOtherWhateverOthersSend(part: UInt64) throws {
    for seed in part * Self.seeds / 10..<(part + 1) * Self.seeds / 10 {
      if let harm = try HostileWorld.harm(seed: seed) { Issue.record("\(harm)") }
    }
  }

  /// A worker that can forward 8,000 packets a second sheds the excess of floods that stay within their senders'
  /// budgets. The other call loses nothing, and voices lose nothing either. People in the flooded call miss each
  /// other's pictures until the rate of the flood is measured, for at most a second.
  @Test func honestPeopleHearAndSeeEachOtherWhileTheWorkerSheds() throws {
    var shares: [Double] = []
    for seed in (isRelease ? 0..<100 : 0..<5) as Range<UInt64> {
      let floods = HostileStrategy.enabled.filter { $0.name.contains("flood") || seed % 3 > 0 }
      let harm = try HostileWorld.harm(
        seed: 10_000 + seed, strategies: floods, capacity: 8_000,
        least: { $0.receiver < 3 && $0.track.index == 2 ? 0.25 : 0.8 }, shed: { shares.append($0) })
      if let harm { Issue.record("\(harm)") }
    }
    let shed = shares.count { $0 < 1 }
    print("shed in \(shed) of \(shares.count) worlds, to \(shares.min() ?? 1) at least")
    #expect(shed * 4 >= shares.count)
  }

  /// Each strategy by itself, so that a failure has a name.
  @Test(arguments: HostileStrategy.enabled.map(\.name)) func noStrategyHarmsByItself(name: String) throws {
    let strategies = HostileStrategy.enabled.filter { $0.name == name }
    for seed in (isRelease ? [2, 3] : [2]) as [UInt64] {
      if let harm = try HostileWorld.harm(seed: seed, strategies: strategies) { Issue.record("\(harm)") }
    }
  }
}

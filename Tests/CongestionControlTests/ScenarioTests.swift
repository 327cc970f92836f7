import CongestionControl
import Glibc
import Testing

/// The scenarios of docs/benchmarks.md. `deploy/rate` runs all of them with 20 seeds; here a few run with two.
@Suite(.serialized) struct ScenarioTests {
  /// At least as good as the port of libwebrtc's controller.
  static let quick = [
    "2 3 → 0.5 → 3 Mbit/s, queue 300, RTT 50", "5 loss 10 %, RTT 50", "7 bursts of 8, 2 %",
    "11 no report for 3 s", "16 50 kbit/s for 60 s, then 2 Mbit/s",
  ]
  /// The figure of a scenario that decides.
  private static let decisive = ["up s", "top share", "kbit/s after 2 s", "video back after s"]

  /// Whether `deploy/rate` asks for the whole table.
  private static let makesTable = getenv("CONCLAVE_RATE") != nil

  @Test(arguments: makesTable ? Scenario.all.map(\.name) : quick) func isAtLeastAsGoodAsThePort(_ name: String) throws {
    let scenario = try #require(Scenario.all.first { $0.name == name })
    let seeds = Array(1...(Self.makesTable ? 20 : 2) as ClosedRange<UInt64>)
    let ours = Figures(scenario, seeds: seeds) { RateEstimator(now: 0) }
    let port = Figures(scenario, seeds: seeds) { LibwebrtcController() }
    if Self.makesTable { for row in tableRows(scenario, ours: ours, port: port) { print(row) } }
    let rows = zip(ours.rows, port.rows).filter { Self.decisive.contains($0.0.name) }
    #expect(!rows.isEmpty)
    for (a, b) in rows {
      let loss = (a.worst - b.worst) * (a.isLowerBetter ? 1 : -1)
      #expect(loss <= a.tolerance, "\(name), \(a.name): \(a.worst.short), the port \(b.worst.short)")
    }
  }
}

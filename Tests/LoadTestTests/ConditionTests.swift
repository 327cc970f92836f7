import Testing

@testable import loadtest

struct ConditionTests {
  @Test(arguments: [
    ("loss>0.1%", Metric.loss, 0.001), ("loss>=0.001", .loss, 0.001), ("p99 > 10ms", .p99, 10),
    ("max>1.5s", .max, 1_500), ("cpu-per-packet>5us", .cpuPerPacket, 0.005), ("join-p99>2s", .joinP99, 2_000),
    ("memory>200MiB", .memory, 209_715_200), ("cpu>80%", .cpu, 0.8), ("packets<1000", .packets, 1_000),
    ("rejoined<100%", .rejoined, 1),
  ])
  func aConditionIsAMetricAndALimitWithItsUnit(_ text: String, _ metric: Metric, _ limit: Double) throws {
    let condition = try Condition(text)
    #expect(condition.metric == metric)
    #expect(abs(condition.limit - limit) < limit * 1e-9)
  }

  @Test(arguments: [
    "loss", "loss>", ">1", "loss=1%", "p99>10", "p99>ten", "p99>10%", "p99>-1ms", "loss>nan", "loss>inf%", "loss>1ms",
    "memory>5ms", "loss>>1%", "", "p99>1ms>2ms", "loss>1e400%",
  ])
  func textsThatAreNoConditionAreRefusedInWords(_ text: String) {
    #expect(throws: Condition.Failure.self) { try Condition(text) }
  }

  @Test func anUnknownMetricIsAnErrorThatListsTheKnownOnes() throws {
    let failure = try #require(throws: Condition.Failure.self) { try Condition("p95>10ms") }
    for metric in Metric.allCases { #expect(failure.description.contains(metric.rawValue)) }
  }

  @Test func commasSeparateConditions() throws {
    #expect(try Condition.list("loss>0.1%, p99>10ms").map(\.metric) == [.loss, .p99])
    #expect(throws: Condition.Failure.self) { try Condition.list("loss>0.1%,") }
  }

  @Test func eachComparisonIsStrictWhereItSaysSo() throws {
    let cases = [
      (">", [false, false, true]), (">=", [false, true, true]), ("<", [true, false, false]),
      ("<=", [true, true, false]),
    ]
    for (comparison, expected) in cases {
      let condition = try Condition("p99\(comparison)10ms")
      #expect([9, 10, 11].map { condition.holds(for: $0) } == expected, "\(comparison)")
    }
  }

  @Test func aFigureThatIsMissingFails() throws {
    #expect(try Condition("p99>10ms").failure(nil) != nil)
    #expect(try Condition("p99>10ms").failure(3) == nil)
    #expect(try Condition("p99>10ms").failure(12)?.contains("12 ms") == true)
  }

  @Test func conditionsTakeThePlaceOfTheDemandThatNothingIsLost() throws {
    let conditions = try Condition.list("loss>1%")
    let figure = { (metric: Metric) in metric == .loss ? 0.005 : nil }
    #expect(!Verdict(faults: [], losses: ["5 were lost"], conditions: [], figure: figure).isOK)
    #expect(Verdict(faults: [], losses: ["5 were lost"], conditions: conditions, figure: figure).isOK)
    #expect(!Verdict(faults: ["one did not join"], losses: [], conditions: conditions, figure: figure).isOK)
    #expect(!Verdict(faults: [], losses: [], conditions: conditions) { _ in 0.02 }.isOK)
  }
}

import ArgumentParser
import Paths
import Testing

@testable import loadtest

struct ScenarioTests {
  private func plan(_ arguments: String...) throws -> CallPlan {
    let command = try LoadTest.parse(arguments)
    let preset = try #require(command.scenario.preset)
    return try command.call.plan(command.server, command.scenario, preset)
  }

  @Test func theUsualScenarioIsAMeetingOfTen() throws {
    let plan = try plan()
    #expect(plan.scenario == .meeting && plan.participants == 10 && plan.publishers == 10 && plan.videoKbps == 600)
    #expect(plan.impairment == nil && plan.joinRate == nil)
  }

  @Test(arguments: Scenario.allCases) func everyScenarioIsExplainedAndCanRun(_ scenario: Scenario) throws {
    #expect(LoadTest.helpMessage().contains(scenario.meaning.prefix(20)))
    guard scenario.preset != nil else { return }
    let plan = try plan("--scenario", scenario.rawValue)
    #expect(plan.scenario == scenario && plan.participants >= 2 && 1...plan.participants ~= plan.publishers)
    switch (scenario, plan.course) {
    case (.churn, .churn(let rate)): #expect(rate == 1)
    case (.ramp, .ramp(let step, let until)):
      #expect(step == 20 && until.map(\.metric) == [.loss, .p99])
    case (.rejoinStorm, .storm): break
    case (.meeting, .steady), (.webinar, .steady), (.audioRoom, .steady), (.lossy, .steady): break
    default: Issue.record("\(scenario) takes another course")
    }
    #expect((plan.impairment != nil) == (scenario == .lossy))
    #expect((plan.videoKbps == nil) == (scenario == .audioRoom || scenario == .rejoinStorm))
  }

  @Test func optionsOverrideTheScenario() throws {
    let webinar = try plan("--scenario", "webinar", "--participants", "2", "--audio-only", "--join-rate", "20/s")
    #expect(webinar.participants == 2 && webinar.publishers == 2 && webinar.videoKbps == nil && webinar.joinRate == 20)
    let room = try plan("--scenario", "audio-room", "--video-kbps", "300", "--publishers", "1", "--duration", "3")
    #expect(room.videoKbps == 300 && room.publishers == 1 && room.duration == .seconds(3))
    let ramp = try plan("--scenario", "ramp", "--step", "5", "--until", "p50>1ms")
    guard case .ramp(let step, let until) = ramp.course else {
      Issue.record("no ramp")
      return
    }
    #expect(step == 5 && until.map(\.text) == ["p50>1ms"])
    let lossy = try plan("--scenario", "lossy", "--impair", "loss=50%", "--impaired", "30%")
    #expect(lossy.impairment?.loss == 0.5 && lossy.impairment?.delay == 0)
    #expect((0..<10).count { lossy.isImpaired($0) } == 3)
    let churning = try plan("--churn", "2/s")
    #expect((0..<10).filter { churning.churns($0) } == [5, 6, 7, 8, 9])
  }

  @Test(arguments: [
    ["--step", "5"], ["--until", "p99>1ms"], ["--scenario", "ramp", "--calls", "2"],
    ["--scenario", "ramp", "--until", "join-p99>1s"], ["--scenario", "ramp", "--until", "cpu>80%"],
    ["--scenario", "ramp", "--churn", "1/s"], ["--scenario", "rejoin-storm", "--outages"],
    ["--churn", "1/s", "--outages"], ["--impaired", "200%"], ["--impair", "loss"], ["--impair", "speed=5ms"],
    ["--impair", "rate=0kbit/s"], ["--join-rate", "0"], ["--fail-if", "p95>1ms"], ["--fail-if", "cpu>50%"],
    ["--scenario", "party"], ["--scenario", "signaling", "--html", "x.html"], ["--audio-only", "--video-kbps", "100"],
  ])
  func optionsThatDoNotFitAreRefused(_ arguments: [String]) {
    #expect(throws: (any Error).self) { try LoadTest.parse(arguments) }
  }

  @Test func anImpairmentIsReadWithItsUnits() throws {
    let read = try ImpairmentOption("loss=5%,delay=50ms,jitter=300us,rate=400kbit/s,queue=0.2s").impairment
    var expected = Impairment()
    expected.loss = 0.05
    expected.delay = 50_000
    expected.jitter = 300
    expected.rate = 400_000
    expected.queue = 200_000
    #expect(read == expected)
  }
}

import ArgumentParser
import Foundation

/// Loads a running server and reports what arrived, how late, and at what cost.
@main
struct LoadTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "loadtest",
    abstract: "Load against a Conclave server: real calls, or messages between many STOMP connections.",
    discussion: """
      Scenarios (--scenario); each option overrides what the scenario sets:
      \(Scenario.help)

      Metrics of --fail-if and --until:
      \(Metric.allCases.map { "  \($0.rawValue) — \($0.meaning), as \($0.example)" }.joined(separator: "\n"))

      The exit status is 0 if all participants joined and nothing was lost, 1 if not, and 64 if an option is wrong. \
      With --fail-if its conditions decide in place of "nothing was lost". Impaired participants may lose what their \
      path drops. Ctrl-C ends the test at any moment with a report of what there is.
      """)

  @Option(help: "The kind of load.")
  var scenario = Scenario.meeting

  @OptionGroup var server: ServerOptions
  @OptionGroup(title: "Options of scenarios with calls") var call: CallOptions
  @OptionGroup(title: "Options of --scenario signaling") var signaling: SignalingOptions

  mutating func validate() throws {
    if let preset = scenario.preset {
      try call.check(server, scenario, preset)
    } else {
      try signaling.check(server)
    }
  }

  func run() async throws {
    Interrupt.watch()
    let report: any LoadReport
    if let preset = scenario.preset {
      report = try await call.run(server, scenario, preset)
    } else {
      report = try await signaling.run(server)
    }
    let verdict = Verdict(
      faults: report.faults, losses: report.losses, conditions: server.conditions, figure: report.figure)
    print(report.text)
    print(verdict.text)
    try write(report, verdict)
    if !verdict.isOK { throw ExitCode(1) }
  }

  private func write(_ report: any LoadReport, _ verdict: Verdict) throws {
    if let json = server.json { try Data(report.json(verdict)).write(to: URL(filePath: json)) }
    if let csv = server.csv { try Data(CSV.text(report.samples).utf8).write(to: URL(filePath: csv)) }
    if let html = server.html, let page = report.page(verdict) {
      try Data(page.html.utf8).write(to: URL(filePath: html))
    }
  }
}

/// The result of a load test.
protocol LoadReport {
  /// For people.
  var text: String { get }
  /// The failures of the run itself.
  var faults: [String] { get }
  /// The losses. They fail the test only if no condition limits them.
  var losses: [String] { get }
  /// The figures of each second; empty for a test without calls.
  var samples: [Sample] { get }
  /// The value of a metric; nil when this run did not measure it.
  func figure(_ metric: Metric) -> Double?
  func json(_ verdict: Verdict) throws -> [UInt8]
  /// nil for a test without calls.
  func page(_ verdict: Verdict) -> Page?
}

import ArgumentParser
import Foundation

/// Loads a running server and says what arrived, how late, and what it cost.
@main
struct LoadTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "loadtest",
    abstract: "Load against a Conclave server: real calls, or messages between many STOMP connections.",
    discussion: """
      Exit status 0 means that everyone came in and nothing was lost; 1 that not; 64 that an option is wrong.
      """)

  enum Scenario: String, ExpressibleByArgument, CaseIterable {
    /// Real calls with real ICE, DTLS, SRTP and SFrame.
    case call
    /// One publisher and many subscribers of a topic, idle connections, and all connecting at once.
    case signaling
  }

  @Option(help: "What to measure.")
  var scenario = Scenario.call

  @OptionGroup var server: ServerOptions
  @OptionGroup(title: "Options of --scenario call") var call: CallOptions
  @OptionGroup(title: "Options of --scenario signaling") var signaling: SignalingOptions

  mutating func validate() throws {
    switch scenario {
    case .call: try call.check(server)
    case .signaling: try signaling.check(server)
    }
  }

  func run() async throws {
    let report: any Report
    switch scenario {
    case .call: report = try await call.run(server)
    case .signaling: report = try signaling.run(server)
    }
    print(report.text)
    if let json = server.json { try Data(report.json()).write(to: URL(filePath: json)) }
    if !report.isClean { throw ExitCode(1) }
  }
}

/// What came of a load test.
protocol Report {
  /// For people.
  var text: String { get }
  /// Everyone came in and nothing was lost.
  var isClean: Bool { get }
  func json() throws -> [UInt8]
}

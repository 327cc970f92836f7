import ArgumentParser
import Foundation

/// Loads a running server and reports what arrived, how late, and at what cost.
@main
struct LoadTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "loadtest",
    abstract: "Load against a Conclave server: real calls, or messages between many STOMP connections.",
    discussion: """
      The exit status is 0 if all participants joined and nothing was lost, 1 if not, and 64 if an option is wrong.
      """)

  enum Scenario: String, ExpressibleByArgument, CaseIterable {
    /// Real calls with real ICE, DTLS, SRTP and SFrame.
    case call
    /// One publisher and many subscribers of a topic, idle connections, and all connecting at once.
    case signaling
  }

  @Option(help: "The kind of load.")
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
    let report: any LoadReport
    switch scenario {
    case .call: report = try await call.run(server)
    case .signaling: report = try signaling.run(server)
    }
    print(report.text)
    if let json = server.json { try Data(report.json()).write(to: URL(filePath: json)) }
    if !report.isClean { throw ExitCode(1) }
  }
}

/// The result of a load test.
protocol LoadReport {
  /// For people.
  var text: String { get }
  /// Everyone came in and nothing was lost.
  var isClean: Bool { get }
  func json() throws -> [UInt8]
}

import ArgumentParser
import ConclaveClient
import Foundation

/// Puts participants into calls on a running server and says what arrived, how late, and what it cost.
@main
struct LoadTest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "loadtest",
    abstract: "Real calls with real ICE, DTLS, SRTP and SFrame against a Conclave server.",
    discussion: """
      Exit status 0 means that everyone joined, nothing was lost and every frame could be decrypted; 1 that not; 64 that an option is wrong.
      """)

  @Option(help: "The server: stomp://HOST:PORT, or stomps:// with TLS.")
  var url = "stomp://127.0.0.1:61613"

  @Option(help: "Number of calls.")
  var calls = 1

  @Option(help: "Participants in each call.")
  var participants = 10

  @Option(help: "Seconds to measure, after all have joined.")
  var duration = 20.0

  @Flag(help: "No video.")
  var audioOnly = false

  @Option(help: "Bitrate of each camera in kbit/s, at 30 frames a second.")
  var videoKbps = 600

  @Option(help: "How many participants of each call send; the rest only watch. Default: all.")
  var publishers: Int?

  @Option(help: "Writes the result as JSON to this file.", completion: .file())
  var json: String?

  @Option(help: "The server's process, for its CPU and memory (on the same machine).")
  var serverPid: Int32?

  @Option(
    help: "The server's state folder, whose secret mints the tokens (default: /var/lib/conclave).",
    completion: .directory)
  var state: String?

  @Option(help: "A file with the server's secret, instead of --state.", completion: .file())
  var secret: String?

  @Option(help: "A file with a token a line, one for each participant, instead of a secret.", completion: .file())
  var tokens: String?

  @Option(
    name: .customLong("guest"),
    help:
      "A user whose client is of another make: the first participant rings it too, and the frames that it sends are counted, not opened."
  )
  var guests: [String] = []

  @Option(help: "Threads for the media of all participants.")
  var threads = 1

  @Option(help: "Seconds that joining may take.")
  var joinTimeout = 30.0

  mutating func validate() throws {
    guard ServerAddress(url) != nil else {
      throw ValidationError("--url must be stomp://HOST:PORT or stomps://HOST:PORT")
    }
    guard calls >= 1, participants >= 2 else {
      throw ValidationError("there must be at least 1 call of 2 participants")
    }
    guard duration > 0, joinTimeout > 0, threads >= 1, (30...20_000).contains(videoKbps) else {
      throw ValidationError("--duration, --join-timeout and --threads must be positive, --video-kbps 30 to 20000")
    }
    guard (publishers.map { 1...participants ~= $0 } ?? true) else {
      throw ValidationError("--publishers must be 1 to --participants")
    }
    guard [state, secret, tokens].compactMap({ $0 }).count <= 1 else {
      throw ValidationError("only one of --state, --secret and --tokens says where tokens come from")
    }
    guard guests.isEmpty || calls == 1 else { throw ValidationError("a --guest comes into one call: take --calls 1") }
  }

  func run() async throws {
    let source: TokenSource
    do {
      source = try TokenSource(state: state, secret: secret, tokens: tokens, count: calls * participants)
    } catch {
      throw ValidationError("\(error)")
    }
    let plan = Plan(
      address: ServerAddress(url)!, calls: calls, participants: participants, publishers: publishers ?? participants,
      duration: .milliseconds(Int(duration * 1000)), joinTimeout: .milliseconds(Int(joinTimeout * 1000)),
      videoKbps: audioOnly ? nil : videoKbps, guests: guests, threads: threads, serverProcess: serverPid)
    let report = try await Run(plan, tokens: source).perform()
    print(report.text)
    if let json { try Data(report.json()).write(to: URL(filePath: json)) }
    if !report.isClean { throw ExitCode(1) }
  }
}

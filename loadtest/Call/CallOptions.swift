import ArgumentParser
import ConclaveClient

/// The number of calls and participants, and their media.
struct CallOptions: ParsableArguments {
  @Option(help: "Number of calls.")
  var calls = 1

  @Option(help: "Participants in each call.")
  var participants = 10

  @Flag(help: "No video.")
  var audioOnly = false

  @Option(help: "Bitrate of each camera in kbit/s, at 30 frames a second.")
  var videoKbps = 600

  @Option(help: "Number of participants of each call that send; the others only watch. Default: all.")
  var publishers: Int?

  @Option(
    name: .customLong("guest"),
    help:
      "A user with another client: the first participant rings it too. The frames that it sends are counted, not decrypted."
  )
  var guests: [String] = []

  @Flag(
    help:
      "Expect the server to be killed and restarted during the test, and check that all participants come back by themselves. Prints a line of JSON when a participant loses the server, rejoins, and hears all the others again. SIGINT ends the measurement."
  )
  var outages = false

  @Option(
    help:
      "Seconds to watch after each of these changes, when all have joined: a leave, a join, a mute and unmute of a speaker. The report then says what each cost beyond the media."
  )
  var costs: Double?

  @Option(
    help: "Minutes between the epochs of a call whose members stay the same. With --costs a rotation is measured, too.")
  var rotateMinutes: Int?

  @Option(
    help:
      "Seconds to wait before the measurement. Devices confirm a new key to each other for 10 s, and 10 ms for each participant."
  )
  var settle = 0.0

  @Option(help: "Threads for the media of all participants.")
  var threads = 1

  func check(_ server: ServerOptions) throws {
    guard ServerAddress(server.url) != nil else {
      throw ValidationError("--url must be stomp://HOST:PORT or stomps://HOST:PORT")
    }
    guard calls >= 1, participants >= 2 else {
      throw ValidationError("there must be at least 1 call of 2 participants")
    }
    guard settle >= 0 else { throw ValidationError("--settle must not be negative") }
    guard threads >= 1, (30...20_000).contains(videoKbps) else {
      throw ValidationError("--threads must be positive, --video-kbps 30 to 20000")
    }
    guard (publishers.map { 1...participants ~= $0 } ?? true) else {
      throw ValidationError("--publishers must be 1 to --participants")
    }
    guard costs.map({ $0 > 0 && participants >= 3 && !outages }) ?? true else {
      throw ValidationError("--costs must be positive, with 3 participants and without --outages")
    }
    guard rotateMinutes.map({ 1...1_440 ~= $0 }) ?? true else {
      throw ValidationError("--rotate-minutes must be 1 to 1440")
    }
    guard guests.isEmpty || calls == 1 else { throw ValidationError("a --guest comes into one call: take --calls 1") }
  }

  func run(_ server: ServerOptions) async throws -> CallReport {
    let source = try server.accounts(calls * participants)
    let plan = CallPlan(
      address: ServerAddress(server.url)!, calls: calls, participants: participants,
      publishers: publishers ?? participants, duration: .milliseconds(Int((server.duration ?? 20) * 1000)),
      joinTimeout: server.joinLimit, videoKbps: audioOnly ? nil : videoKbps, guests: guests, outages: outages,
      rotateMinutes: rotateMinutes, costWindow: costs.map { .milliseconds(Int($0 * 1_000)) },
      settleTime: .milliseconds(Int(settle * 1_000)),
      threads: threads,
      serverProcess: server.serverPid)
    return try await CallRun(plan, tokens: source).perform()
  }
}

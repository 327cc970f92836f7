import ArgumentParser
import ConclaveClient

/// The number of calls and participants, their media, and what happens to them. The scenario sets the options that are
/// left out.
struct CallOptions: ParsableArguments {
  @Option(help: "Number of calls.")
  var calls = 1

  @Option(help: "Participants in each call; for a ramp, the most.")
  var participants: Int?

  @Flag(help: "No video.")
  var audioOnly = false

  @Option(help: "Bitrate of each camera in kbit/s, at 30 frames a second; adds video to a scenario without it.")
  var videoKbps: Int?

  @Option(help: "Number of participants of each call that send, counted from the first; the others only watch.")
  var publishers: Int?

  @Option(
    help: "The number of participants that join each second, as 20/s. Default: all at once.",
    transform: { try rate($0, "--join-rate") })
  var joinRate: Double?

  @Option(
    help: "The number of participants, from the last half, that leave and join again each second, as 2/s.",
    transform: { try rate($0, "--churn") })
  var churn: Double?

  @Option(help: "Participants that each step of a ramp adds. Those among the first --publishers send.")
  var step: Int?

  @Option(
    help: "The ramp ends when one of these conditions holds. Default: loss>0.1%,p99>10ms.",
    transform: Condition.list)
  var until: [Condition]?

  @Option(
    help:
      "A bad path in both directions, as 'loss=5%,delay=50ms,jitter=10ms,rate=400kbit/s,queue=200ms'. This program simulates it for the participants' media.",
    transform: { try ImpairmentOption($0) })
  var impair: ImpairmentOption?

  @Option(
    help: "The share of the participants with a bad path, as 30% or 0.3. Default: all.",
    transform: { text in
      guard let share = Quantity.share(text), 0...1 ~= share else {
        throw ValidationError("--impaired is a share, 0 to 100%")
      }
      return share
    })
  var impaired: Double?

  @Flag(
    help:
      "Participants report what arrives (transport-wide feedback, ten times a second), as browsers do, so that the server estimates their paths."
  )
  var feedback = false

  @Flag(
    help:
      "Cameras send three simulcast layers with temporal layers and dependency descriptors, as browsers do; --video-kbps is the rate of the highest one. The report says which layers arrived, and whether they could be decoded."
  )
  var layers = false

  @Option(help: "The random seed for losses and delays of bad paths. Default: 1.")
  var seed: UInt64 = 1

  @Option(
    name: .customLong("guest"),
    help:
      "A user with another client, whom the first participant also rings. The frames that it sends are counted, not decrypted."
  )
  var guests: [String] = []

  @Flag(
    help:
      "Expect the server to be killed and restarted during the test, and check that all participants come back on their own. Prints a line of JSON when a participant loses the server, rejoins, and hears all the others again."
  )
  var outages = false

  @Option(
    help:
      "Measures what changes of a call cost beyond its media, once everybody has joined: a leave, a join, a mute and unmute of a speaker. The value is the seconds to watch after each."
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

  private static func rate(_ text: String, _ option: String) throws -> Double {
    guard let rate = Quantity.perSecond(text), 0.01...10_000 ~= rate else {
      throw ValidationError("\(option) is a number a second, as 20/s")
    }
    return rate
  }

  func check(_ server: ServerOptions, _ scenario: Scenario, _ preset: CallPreset) throws {
    try checkTarget(server, scenario)
    let participants = participants ?? preset.participants
    guard calls >= 1, participants >= 2, calls <= 1_000, participants <= 100_000 else {
      throw ValidationError("there must be 1 to 1000 calls of at least 2 participants")
    }
    guard settle >= 0 else { throw ValidationError("--settle must not be negative") }
    guard threads >= 1, (30...20_000).contains(videoKbps ?? preset.videoKbps) else {
      throw ValidationError("--threads must be positive, --video-kbps 30 to 20000")
    }
    guard !audioOnly || videoKbps == nil else {
      throw ValidationError("--audio-only is without video: leave out --video-kbps")
    }
    guard !layers || !audioOnly else { throw ValidationError("--audio-only is without video: leave out --layers") }
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
    try checkCourse(server, scenario)
  }

  private func checkTarget(_ server: ServerOptions, _ scenario: Scenario) throws {
    switch server.target {
    case .conclave:
      guard ServerAddress(server.url) != nil else {
        throw ValidationError("--url must be stomp://HOST:PORT, stomps://HOST:PORT, or wss://HOST/stomp")
      }
    case .janus:
      guard server.url.hasPrefix("http://") || server.url.hasPrefix("https://") else {
        throw ValidationError("--url must be http://HOST:PORT/janus or https://HOST:PORT/janus")
      }
      guard [.meeting, .webinar, .audioRoom, .ramp, .lossy].contains(scenario),
        churn == nil, costs == nil, rotateMinutes == nil, guests.isEmpty, !outages, !layers, !feedback
      else {
        throw ValidationError(
          "--target janus is for meeting, webinar, audio-room, ramp and lossy, without --churn, --costs, --rotate-minutes, --guest, --outages, --layers and --feedback"
        )
      }
    }
  }

  private func checkCourse(_ server: ServerOptions, _ scenario: Scenario) throws {
    if scenario == .ramp {
      guard calls == 1, step.map({ $0 >= 1 }) ?? true else {
        throw ValidationError("a ramp is of one call, and --step is at least 1")
      }
      let senders = publishers ?? scenario.preset?.publishers ?? 1
      guard server.target == .conclave || senders <= (step ?? scenario.preset?.step ?? 1) else {
        throw ValidationError("with --target janus all --publishers come with the first step: take a larger --step")
      }
      for condition in until ?? [] {
        guard Measurement.metrics.contains(condition.metric) else {
          let names = Measurement.metrics.map(\.rawValue).joined(separator: ", ")
          throw ValidationError("--until \(condition.text): a step has no such figure; use one of \(names)")
        }
        guard !condition.metric.needsServerProcess || server.serverPid != nil else {
          throw ValidationError("--until \(condition.text) needs --server-pid, on the server's machine")
        }
      }
    } else if step != nil || until != nil {
      throw ValidationError("--step and --until belong to --scenario ramp")
    }
    let changes = scenario == .ramp || scenario == .rejoinStorm
    guard !changes || (churn == nil && costs == nil && !outages) else {
      throw ValidationError("--churn, --costs and --outages do not go with --scenario \(scenario.rawValue)")
    }
    guard churn == nil && scenario != .churn || !outages else {
      throw ValidationError("--outages does not go with participants that leave and join")
    }
  }

  func run(_ server: ServerOptions, _ scenario: Scenario, _ preset: CallPreset) async throws -> CallReport {
    let plan = try plan(server, scenario, preset)
    guard case .conclave(let address) = plan.target else { return try await CallRun(plan, tokens: nil).perform() }
    let source = try server.accounts(plan.total)
    // The probe speaks only STOMP; with a proxy, the first join reports what is wrong.
    if address.webSocketPath == nil {
      let probe = ServerProbe(host: address.host, port: address.port, usesTLS: address.usesTLS)
      try await probe.check(source.accounts[0].connectFrame(host: address.host), within: plan.joinTimeout)
    }
    return try await CallRun(plan, tokens: source).perform()
  }

  /// The options, completed with the scenario's values.
  func plan(_ server: ServerOptions, _ scenario: Scenario, _ preset: CallPreset) throws -> CallPlan {
    let participants = participants ?? preset.participants
    let isAudioOnly = audioOnly || (preset.isAudioOnly && videoKbps == nil && !layers)
    let bad = try impair ?? preset.impairment.map { try ImpairmentOption($0) }
    return CallPlan(
      scenario: scenario,
      target: server.target == .janus ? .janus(server.url) : .conclave(ServerAddress(server.url)!), calls: calls,
      participants: participants,
      publishers: publishers ?? min(preset.publishers ?? participants, participants), course: course(scenario, preset),
      duration: .milliseconds(Int((server.duration ?? preset.seconds) * 1000)), joinTimeout: server.joinLimit,
      joinRate: joinRate, videoKbps: isAudioOnly ? nil : videoKbps ?? preset.videoKbps, isLayered: layers,
      impairment: bad?.impairment,
      impairedShare: impaired ?? 1, isReporting: feedback, seed: seed, guests: guests, outages: outages,
      rotateMinutes: rotateMinutes,
      costWindow: costs.map { .milliseconds(Int($0 * 1_000)) }, settleTime: .milliseconds(Int(settle * 1_000)),
      threads: threads, serverProcess: server.serverPid)
  }

  private func course(_ scenario: Scenario, _ preset: CallPreset) -> CallPlan.Course {
    switch scenario {
    case .ramp: .ramp(step: step ?? preset.step ?? 20, until: until ?? Self.usualLimits)
    case .rejoinStorm: .storm
    default: (churn ?? preset.churnRate).map { .churn(perSecond: $0) } ?? .steady
    }
  }

  private static let usualLimits = (try? Condition.list("loss>0.1%,p99>10ms")) ?? []
}

extension TokenSource.Account {
  /// The CONNECT frame of this device, without heart-beats.
  func connectFrame(host: String) -> [UInt8] {
    Array(
      "CONNECT\naccept-version:1.2\nhost:\(host)\nheart-beat:0,0\npasscode:\(token)\ndevice:\(device)\n\n\0".utf8)
  }
}

import ArgumentParser
import MediaModel

/// The loads, the servers to put them on, and the number of runs.
struct SignalingOptions: ParsableArguments {
  @Option(
    name: .customLong("fan-out"),
    help:
      "SUBSCRIBERS@RATE, may be repeated: one publisher sends RATE messages a second to SUBSCRIBERS subscribers. The rate `max` means as fast as they arrive. Default: 100@max, 100@50, 1000@5."
  )
  var fanOuts: [FanOut] = []

  @Option(help: "Connections that are opened at once and then stay idle; 0 for none.")
  var connections = 5_000

  @Option(help: "The topic. Conclave's configuration must name its prefix in `destinations`.")
  var destination = "/topic/load"

  @Option(help: "Runs of each load; the report gives medians.")
  var runs = 5

  @Option(help: "A second server to compare with, alternating run by run: stomp://LOGIN:PASSCODE@HOST:PORT.")
  var against: String?

  @Option(help: "The process id of the second server.")
  var againstPid: Int32?

  func check(_ server: ServerOptions) throws {
    guard server.html == nil, server.csv == nil else {
      throw ValidationError("--html and --csv are for calls: take --json")
    }
    for url in [server.url, against].compactMap({ $0 }) where BrokerAddress(url) == nil {
      throw ValidationError("\(url): signaling is measured at stomp://HOST:PORT or stomp://LOGIN:PASSCODE@HOST:PORT")
    }
    guard (0...19_000).contains(connections), runs >= 1 else {
      throw ValidationError("--connections must be 0 to 19000, --runs positive")
    }
    guard destination.hasPrefix("/"), !destination.contains(where: { $0.isNewline || $0 == "\\" || $0 == ":" }) else {
      throw ValidationError("--destination must be a topic, as /topic/load")
    }
  }

  func run(_ server: ServerOptions) async throws -> SignalingReport {
    let loads = fanOuts.isEmpty ? FanOut.usual : fanOuts
    let accounts = 1 + max(connections, loads.map(\.subscribers).max() ?? 0)
    try raiseOpenFileLimit(to: accounts + 100)
    let plan = SignalingPlan(
      fanOuts: loads, connections: connections, destination: destination, runs: runs,
      duration: .milliseconds(Int((server.duration ?? 5) * 1000)), joinTimeout: server.joinLimit)
    let brokers = try [(server.url, server.serverPid), (against, againstPid)].compactMap { url, process in
      try url.flatMap(BrokerAddress.init).map { address in
        MeasuredBroker(
          address: address, process: process,
          credentials: try address.credentials.map { .same($0) } ?? .each(server.accounts(accounts).accounts))
      }
    }
    for broker in brokers {
      let probe = ServerProbe(host: broker.address.host, port: Int(broker.address.port), usesTLS: false)
      try await probe.check(broker.connectFrame(0), within: plan.joinTimeout)
    }
    return try SignalingRun(plan, brokers: brokers).perform()
  }
}

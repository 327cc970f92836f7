import ArgumentParser

/// The options of all scenarios: the server, the tokens to sign in with, and where the result goes.
struct ServerOptions: ParsableArguments {
  /// The kinds of server.
  enum Kind: String, ExpressibleByArgument, CaseIterable {
    case conclave, janus
  }

  @Option(
    help:
      "The kind of server. With janus the calls are rooms of its VideoRoom plugin, and --url is its HTTP API. This is for comparisons: the same media, without key agreement."
  )
  var target = Kind.conclave

  @Option(
    name: .customLong("url"),
    help:
      "The server: stomp://HOST:PORT, or stomps:// with TLS, or wss://HOST/stomp behind a web proxy. For signaling without TLS, and stomp://LOGIN:PASSCODE@HOST:PORT for a server that takes no tokens; http://HOST:PORT/janus for Janus (default: stomp://127.0.0.1:61613, or http://127.0.0.1:8088/janus)."
  )
  var givenURL: String?

  @Option(
    help:
      "Seconds to measure, after all have joined (default: 20 for calls; 5 for each step of ramp, after a rejoin-storm, and for each load of signaling)."
  )
  var duration: Double?

  @Option(help: "Writes the result as JSON to this file.", completion: .file())
  var json: String?

  @Option(help: "Writes the figures of each second to this file, as CSV. For calls.", completion: .file())
  var csv: String?

  @Option(
    help: "Writes a report with plots to this file, one HTML page that needs nothing else. For calls.",
    completion: .file())
  var html: String?

  @Option(
    name: .customLong("fail-if"),
    help:
      "A condition under which the test fails, as 'loss>0.1%' or 'p99>10ms,cpu>80%'; may be repeated. The list of metrics is above.",
    transform: Condition.list)
  var failIf: [[Condition]] = []

  @Option(help: "The server's process id, to measure its CPU time and memory (on the same machine).")
  var serverPid: Int32?

  @Option(
    help: "The server's state folder, whose secret mints the tokens (default: /var/lib/conclave).",
    completion: .directory)
  var state: String?

  @Option(help: "A file with the server's secret, instead of --state.", completion: .file())
  var secret: String?

  @Option(help: "A file with one token per line, one for each participant, instead of a secret.", completion: .file())
  var tokens: String?

  @Option(help: "The longest time that joining may take, in seconds.")
  var joinTimeout = 30.0

  mutating func validate() throws {
    guard duration.map({ $0 > 0 }) ?? true, joinTimeout > 0 else {
      throw ValidationError("--duration and --join-timeout must be positive")
    }
    if serverPid == nil, let condition = conditions.first(where: { $0.metric.needsServerProcess }) {
      throw ValidationError("--fail-if \(condition.text) needs --server-pid, on the server's machine")
    }
    guard [state, secret, tokens].compactMap({ $0 }).count <= 1 else {
      throw ValidationError("use only one of --state, --secret and --tokens: each names a source of tokens")
    }
  }

  var url: String { givenURL ?? (target == .janus ? "http://127.0.0.1:8088/janus" : "stomp://127.0.0.1:61613") }

  var conditions: [Condition] { failIf.flatMap(\.self) }

  var joinLimit: Duration { .milliseconds(Int(joinTimeout * 1000)) }

  func accounts(_ count: Int) throws -> TokenSource {
    do {
      return try TokenSource(state: state, secret: secret, tokens: tokens, count: count)
    } catch {
      throw ValidationError("\(error)")
    }
  }
}

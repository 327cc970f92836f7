import ArgumentParser

/// The server, who may sign in to it, and where the result goes: the same in each scenario.
struct ServerOptions: ParsableArguments {
  @Option(
    help:
      "The server: stomp://HOST:PORT, or stomps:// with TLS. For signaling without TLS, and stomp://LOGIN:PASSCODE@HOST:PORT for a server that takes no tokens."
  )
  var url = "stomp://127.0.0.1:61613"

  @Option(help: "Seconds to measure, after all have joined (default: 20 for calls, 5 for each load of signaling).")
  var duration: Double?

  @Option(help: "Writes the result as JSON to this file.", completion: .file())
  var json: String?

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
    guard [state, secret, tokens].compactMap({ $0 }).count <= 1 else {
      throw ValidationError("use only one of --state, --secret and --tokens: each names a source of tokens")
    }
  }

  var joinLimit: Duration { .milliseconds(Int(joinTimeout * 1000)) }

  func accounts(_ count: Int) throws -> TokenSource {
    do {
      return try TokenSource(state: state, secret: secret, tokens: tokens, count: count)
    } catch {
      throw ValidationError("\(error)")
    }
  }
}

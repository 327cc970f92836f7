/// A figure of a report that a condition may name.
enum Metric: String, CaseIterable, Sendable, Encodable {
  case loss, p50, p90, p99, max
  case audioLoss = "audio-loss"
  case audioP99 = "audio-p99"
  case joinP50 = "join-p50"
  case joinP99 = "join-p99"
  case joinMax = "join-max"
  case joined, rejoined
  case rejoinP99 = "rejoin-p99"
  case undecryptable, undecodable, freeze, packets, cpu
  case cpuPerPacket = "cpu-per-packet"
  case memory
  case ownCPU = "own-cpu"

  /// The kind of unit in which limits of this metric are written. They are compared in the unit in parentheses.
  enum Kind {
    /// (1)
    case share
    /// (ms)
    case time
    /// (1)
    case count
    /// (bytes)
    case memory
  }

  var kind: Kind {
    switch self {
    case .loss, .audioLoss, .undecodable, .joined, .rejoined, .cpu, .ownCPU: .share
    case .p50, .p90, .p99, .max, .audioP99, .freeze, .joinP50, .joinP99, .joinMax, .rejoinP99, .cpuPerPacket: .time
    case .undecryptable, .packets: .count
    case .memory: .memory
    }
  }

  /// A short description for `--help`.
  var meaning: String {
    switch self {
    case .loss: "share of the packets (or messages) that did not arrive"
    case .p50, .p90, .p99, .max: "one-way latency"
    case .audioLoss: "the same, of audio only"
    case .audioP99: "one-way latency of audio only"
    case .joinP50, .joinP99, .joinMax: "join time"
    case .joined: "share of the participants that joined"
    case .rejoined: "share of the participants that came back"
    case .rejoinP99: "time without the others after a lost connection"
    case .undecryptable: "frames that did not open"
    case .undecodable: "share of the frames (--layers) whose reference is missing"
    case .freeze: "longest time without a new picture (--layers)"
    case .packets: "packets (or messages) received each second"
    case .cpu: "share of a core that the server uses"
    case .cpuPerPacket: "the server's CPU time for each packet (or message)"
    case .memory: "the server's memory"
    case .ownCPU: "share of a core that the busiest media thread of the load test uses"
    }
  }

  /// The name in headings.
  var title: String {
    switch self {
    case .loss: "Loss"
    case .p50, .p90, .p99: "Latency \(rawValue)"
    case .max: "Latency, highest"
    case .audioLoss: "Loss of audio"
    case .audioP99: "Latency p99 of audio"
    case .joinP50: "Join time p50"
    case .joinP99: "Join time p99"
    case .joinMax: "Join time, highest"
    case .joined: "Joined"
    case .rejoined: "Came back"
    case .rejoinP99: "Gap p99"
    case .undecryptable: "Did not open"
    case .undecodable: "Not decodable"
    case .freeze: "Longest freeze"
    case .packets: "Packets a second"
    case .cpu: "Server CPU"
    case .cpuPerPacket: "Server CPU a packet"
    case .memory: "Server memory"
    case .ownCPU: "Busiest thread here"
    }
  }

  /// Whether it is known only with `--server-pid`.
  var needsServerProcess: Bool { [.cpu, .cpuPerPacket, .memory].contains(self) }

  /// Parses a limit of this metric, such as `0.1%`, `10ms` or `200MiB`.
  func limit(_ text: some StringProtocol) -> Double? {
    switch kind {
    case .share: Quantity.share(text)
    case .time: Quantity.milliseconds(text)
    case .count: Quantity.number(text)
    case .memory: Quantity.bytes(text)
    }
  }

  /// An example of a limit, for error messages.
  var example: String {
    switch kind {
    case .share: "0.1%"
    case .time: "10ms"
    case .count: "100"
    case .memory: "200MiB"
    }
  }
}

import Foundation
import LinuxIO

/// The cost of one change in a call for all its participants together, beyond the cost of the media during the change.
struct ChangeCost: Sendable, Encodable {
  var change: String
  /// CPU time of the server, in milliseconds; nil when its process is not known.
  var serverMs: Double?
  /// CPU time of the participants, in milliseconds.
  var clientMs: Double
  /// Bytes of signaling that the participants received and sent.
  var bytesDown, bytesUp: Double

  func text(participants: Int) -> String {
    func perParticipant(_ value: Double?, _ unit: Double = 1) -> String {
      value.map { String(format: "%8.1f", $0 * unit / Double(participants)) } ?? "       -"
    }
    return change.padding(toLength: 18, withPad: " ", startingAt: 0)
      + "server \(perParticipant(serverMs, 1_000)) µs   participant \(perParticipant(clientMs, 1_000)) µs   "
      + "down \(perParticipant(bytesDown)) bytes   up \(perParticipant(bytesUp)) bytes"
  }
}

/// The resources that the server and this process have used so far.
struct UsageReading {
  private let server: Double?
  private let client: Double
  private let down, up: Double
  private let at: ContinuousClock.Instant

  /// - Parameter server: its process, on this machine.
  init(server process: Int32?) {
    server = process.flatMap { ProcessUsage(of: $0) }.map { Double($0.cpuNanoseconds) / 1e6 }
    client = ProcessUsage().map { Double($0.cpuNanoseconds) / 1e6 } ?? 0
    (down, up) = Self.transferred
    at = .now
  }

  /// Returns the usage since `before` as the cost of `change`.
  func cost(of change: String, since before: UsageReading) -> ChangeCost {
    ChangeCost(
      change: change, serverMs: server.flatMap { now in before.server.map { now - $0 } },
      clientMs: client - before.client,
      bytesDown: down - before.down, bytesUp: up - before.up)
  }

  func seconds(since before: UsageReading) -> Double { Double((at - before.at) / .milliseconds(1)) / 1_000 }

  /// Bytes that this process read and wrote by read(2) and write(2) (proc(5)): the TCP connections. Media uses other
  /// system calls.
  private static var transferred: (down: Double, up: Double) {
    guard let text = try? String(contentsOfFile: "/proc/self/io", encoding: .utf8) else { return (0, 0) }
    var values: [Substring: Double] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":")
      if parts.count == 2 { values[parts[0]] = Double(parts[1].drop { $0 == " " }) }
    }
    return (values["rchar"] ?? 0, values["wchar"] ?? 0)
  }
}

extension ChangeCost {
  /// The cost minus what the call costs in the same time without a change.
  func without(_ idle: ChangeCost, share: Double) -> ChangeCost {
    ChangeCost(
      change: change, serverMs: serverMs.flatMap { ms in idle.serverMs.map { ms - $0 * share } },
      clientMs: clientMs - idle.clientMs * share, bytesDown: bytesDown - idle.bytesDown * share,
      bytesUp: bytesUp - idle.bytesUp * share)
  }
}

import Forwarding
import Foundation
import LinuxIO
import MediaModel
import Testing
import Transport

@testable import MediaPlane

/// The gain of a second worker, each with its own processor: for one call that both share, and for a separate call
/// each, which is the maximum that the machine can give.
@Suite(.serialized) struct WorkerMicroBenchmarks {
  enum Layout: String, CaseIterable {
    case one = "one worker"
    case shared = "two workers share the call"
    case apart = "two workers, a call of 1 to 25 each"
  }

  private static let listeners = 50
  private static let burst = 64
  /// Bursts in flight at a time: few enough for a socket's buffer, and enough that no worker waits.
  private static let window = 6
  private static let bursts = 60
  private static let rounds = 10

  /// Prints wall time for each sent packet. A listener for each worker shows its progress.
  @Test(arguments: Layout.allCases) func oneMicrophoneToFifty(layout: Layout) throws {
    let workers = layout == .one ? 1 : 2
    let senders = layout == .apart ? 2 : 1
    var configuration = MediaPlaneConfiguration()
    configuration.workers = workers
    configuration.isPinned = true
    configuration.tcp = false
    // As many packets as the workers can take, more than a microphone would send.
    let all = (packets: 1_000_000_000, kilobits: 8_000_000)
    configuration.setPublishing(audio: all, video: all, participant: all)
    let certificate = DTLSCertificate()
    let log = EventLog()
    let plane = try MediaWorkers(configuration, node: Incarnation(1), certificate: certificate, seed: 1) {
      log.append($0)
    }
    let clients = try (0..<senders + Self.listeners).map { index in
      let isSender = index < senders
      return try TestClient(
        UInt32(index + 1), server: certificate, slots: isSender ? 0 : 1, call: "call\(index % senders)",
        isSender: isSender)
    }
    try plane.connect(clients, log)
    for client in clients { client.keepsPayloads = false }
    let witnesses = clients.suffix(workers)
    let payload = [UInt8](repeating: 7, count: 1_100)
    var sent = 0
    func arrived(_ count: Int) -> Bool {
      eventually({ witnesses.allSatisfy { $0.received >= count } }) {
        for witness in witnesses where witness.received < count { witness.receive(waiting: 1_000_000) }
      }
    }
    var best = Double.infinity
    for _ in 0..<Self.rounds {
      let start = MonotonicClock.now()
      for _ in 0..<Self.bursts {
        for sender in clients.prefix(senders) {
          for _ in 0..<Self.burst / 16 { sender.sendAudio(payload, count: 16) }
        }
        sent += Self.burst
        try #require(arrived(sent - Self.window * Self.burst))
      }
      try #require(arrived(sent))
      let time = start.duration(to: MonotonicClock.now()).nanoseconds
      best = min(best, Double(time) / Double(Self.bursts * Self.burst * Self.listeners))
      // Consent would expire after 10 s.
      for client in clients { client.check() }
    }
    plane.stop()
    let forwarded = plane.statistics().reduce(0) { $0 + $1.forwarding.forwarded }
    #expect(forwarded == UInt64(sent * Self.listeners))
    print("bench|wall time of a call of 1 to 50, \(layout.rawValue)|\(String(format: "%.0f", best))|-")
  }
}

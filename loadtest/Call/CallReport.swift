import Foundation
import JSON
import MediaModel
import Synchronization

/// The result of a load test with calls.
struct CallReport: LoadReport {
  private let plan: CallPlan
  private let joinTimes: LatencyHistogram
  private let joined: Int
  private let failures: [String]
  private let expected: UInt64
  private let received: UInt64
  private let tally: Tally
  private let server: ServerUsage.Result?
  private let outages: Outages?
  private let costs: [ChangeCost]

  /// Each participant should have got all that the others of its call sent while the test measured.
  init(
    plan: CallPlan, participants: [SimulatedParticipant], traffic: [PeerTraffic], tally: Tally,
    server: ServerUsage.Result?,
    costs: [ChangeCost] = []
  ) {
    self.costs = costs
    self.plan = plan
    self.tally = tally
    self.server = server
    outages = plan.outages ? Outages(participants) : nil
    var times = LatencyHistogram()
    for time in participants.compactMap(\.joinTime) { times.record(nanoseconds: UInt64(max(0, time.nanoseconds))) }
    joinTimes = times
    joined = times.count
    failures = Array(Set(participants.compactMap(\.failure))).sorted()
    var expected: UInt64 = 0
    var received: UInt64 = 0
    for members in Dictionary(grouping: traffic, by: \.call).values {
      let sent = members.reduce(into: [TrackKey: Traffic]()) { $0.merge($1.sent) { first, _ in first } }
      for member in members {
        for (key, traffic) in sent where member.sent[key] == nil {
          expected += traffic.packets
          received += min(traffic.packets, member.received[key]?.packets ?? 0)
        }
      }
    }
    self.expected = expected
    self.received = received
  }

  /// 0 to 1.
  private var loss: Double { expected == 0 ? 0 : Double(expected - received) / Double(expected) }

  /// Everyone joined, everything arrived, everything opened; with outages everyone is back, and what arrived opened.
  var isClean: Bool {
    guard joined == plan.total, tally.decryptFailures == 0, failures.isEmpty else { return false }
    if let outages { return outages.away == 0 }
    return expected > 0 && received == expected
  }

  var text: String {
    func times(_ histogram: LatencyHistogram) -> String {
      String(
        format: "p50 %.1f   p90 %.1f   p99 %.1f   max %.1f ms", histogram.milliseconds(atShare: 0.5),
        histogram.milliseconds(atShare: 0.9), histogram.milliseconds(atShare: 0.99), histogram.maximumMilliseconds)
    }
    var lines = [
      "joined            \(joined) of \(plan.total) in \(plan.calls) call\(plan.calls == 1 ? "" : "s")",
      "join time         \(times(joinTimes))",
      String(format: "packets           %llu of %llu received, loss %.5f %%", received, expected, loss * 100),
      "frames            \(tally.frames) decrypted, \(tally.decryptFailures) failed",
      "one-way latency   \(times(tally.latency))",
      "retransmission    \(tally.nacked) asked for, \(tally.retransmitted) came, \(tally.abandoned) given up",
    ]
    if let outages {
      lines.append("gaps              \(outages.gapCount), \(times(outages.gaps)), \(outages.away) not back")
    }
    if tally.socketDrops > 0 { lines.append("lost on this side \(tally.socketDrops) datagrams, for want of buffer") }
    if let server {
      lines.append(
        String(
          format: "server            %.2f µs CPU a forwarded packet at %.0f packets/s (%.0f %% of a core)",
          server.cpuMicrosPerPacket, server.packetsPerSecond, server.cpuShare * 100))
      lines.append(
        String(
          format: "server memory     %.1f MiB, %.0f KiB a participant", Double(server.rssBytes) / 1_048_576,
          Double(server.addedBytes) / 1024 / Double(plan.total)))
    }
    lines += costs.map { $0.text(participants: plan.participants) }
    lines += failures.map { "failure           \($0)" }
    lines.append(isClean ? "ok" : "NOT ok")
    return lines.joined(separator: "\n")
  }

  func json() throws -> [UInt8] {
    try JSONCoding.encode(
      Content(
        calls: plan.calls, participants: plan.total, publishers: plan.publishers * plan.calls, joined: joined,
        durationSeconds: plan.duration.seconds, videoKbps: plan.videoKbps ?? 0, expected: expected, received: received,
        loss: loss, frames: tally.frames, decryptFailures: tally.decryptFailures, guestFrames: tally.guestFrames,
        nacked: tally.nacked,
        retransmitted: tally.retransmitted, latencyMs: Content.Times(tally.latency), joinMs: Content.Times(joinTimes),
        server: server.map(Content.ServerFigures.init), outages: outages.map(Content.Outages.init), costs: costs,
        failures: failures,
        ok: isClean))
  }

  private struct Content: Encodable {
    struct Times: Encodable {
      var p50, p90, p99, max: Double
      init(_ histogram: LatencyHistogram) {
        p50 = histogram.milliseconds(atShare: 0.5)
        p90 = histogram.milliseconds(atShare: 0.9)
        p99 = histogram.milliseconds(atShare: 0.99)
        max = histogram.maximumMilliseconds
      }
    }

    struct ServerFigures: Encodable {
      var cpuMicrosPerPacket, packetsPerSecond: Double
      var rssBytes, addedBytes: UInt64
      init(_ result: ServerUsage.Result) {
        cpuMicrosPerPacket = result.cpuMicrosPerPacket
        packetsPerSecond = result.packetsPerSecond
        rssBytes = result.rssBytes
        addedBytes = result.addedBytes
      }
    }

    struct Outages: Encodable {
      var gapMs: Times
      var gaps, away: Int
      /// The stays of each participant, in order.
      var stays: [[Stay]]
      init(_ outages: CallReport.Outages) {
        gapMs = Times(outages.gaps)
        gaps = outages.gapCount
        away = outages.away
        stays = outages.stays.map { $0.map { Stay(opened: $0.opened, refused: $0.refused) } }
      }
    }

    struct Stay: Encodable { var opened, refused: UInt64 }

    var calls, participants, publishers, joined: Int
    var durationSeconds: Double
    var videoKbps: Int
    var expected, received: UInt64
    var loss: Double
    var frames, decryptFailures, guestFrames, nacked, retransmitted: UInt64
    var latencyMs: Times
    var joinMs: Times
    var server: ServerFigures?
    var outages: Outages?
    var costs: [ChangeCost]
    var failures: [String]
    var ok: Bool
  }
}

extension CallReport {
  /// How the participants came back from a server that died.
  struct Outages {
    var gaps = LatencyHistogram()
    var gapCount = 0
    /// Participants that were not back at the end.
    var away = 0
    /// The frames that each participant opened in each of its stays.
    var stays: [[StayCount]] = []

    init(_ participants: [SimulatedParticipant]) {
      for participant in participants {
        let moments = participant.moments.withLock { $0 }
        if !moments.absences.isBack { away += 1 }
        gapCount += moments.absences.gaps.count
        for gap in moments.absences.gaps { gaps.record(nanoseconds: UInt64(max(0, gap.nanoseconds))) }
        stays.append(moments.stays.map(\.state.count))
      }
    }
  }
}

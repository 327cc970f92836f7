import JSON

/// For programs.
extension CallReport {
  func json(_ verdict: Verdict) throws -> [UInt8] {
    let tally = outcome.tally
    return try JSONCoding.encode(
      Content(
        scenario: plan.scenario.rawValue, calls: plan.calls, participants: invited,
        publishers: plan.publishers * plan.calls, joined: joined, durationSeconds: measurement?.seconds ?? 0,
        videoKbps: plan.videoKbps ?? 0, seed: plan.seed, expected: measurement?.delivery.expected ?? 0,
        received: measurement?.delivery.received ?? 0, loss: measurement?.delivery.loss ?? 0, frames: tally.frames,
        decryptFailures: tally.decryptFailures, guestFrames: tally.guestFrames, nacked: tally.nacked,
        retransmitted: tally.retransmitted, impaired: tally.impaired,
        latencyMs: Content.Times(measurement?.latency ?? LatencyHistogram()),
        audio: measurement.map(Content.Audio.init),
        layers: plan.isLayered ? measurement.map { Content.Layers($0.layers) } : nil, joinMs: Content.Times(joinTimes),
        joins: joinTimes.count, server: measurement?.server.map(Content.ServerFigures.init),
        joining: outcome.joining.map(Content.Own.init), own: measurement.map { Content.Own($0.own) },
        outages: returns.map(Content.Outages.init), stays: stays.map { $0.map(Content.Stay.init) },
        costs: outcome.costs, steps: outcome.steps.map(Content.Step.init), lastGoodStep: lastGoodStep?.participants,
        samples: outcome.samples, interrupted: outcome.interruption, failures: failures, faults: verdict.faults,
        ok: verdict.isOK))
  }

  /// Many properties: each is a member of the JSON object that programs read.
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

    struct Audio: Encodable {
      var loss: Double
      var latencyMs: Times
      init(_ measurement: Measurement) {
        loss = measurement.audio.loss
        latencyMs = Times(measurement.audioLatency)
      }
    }

    /// Frames of the measured time, by the name of their layer.
    struct Layers: Encodable {
      var decodable: [String: UInt64]
      var undecodable, switches: UInt64
      var longestFreezeMs: Double
      init(_ count: LayerCount) {
        decodable = Dictionary(uniqueKeysWithValues: zip(CameraLayer.all.map(\.rid), count.decodable))
        undecodable = count.undecodable
        switches = count.switches
        longestFreezeMs = Double(count.longestGap) / 1e6
      }
    }

    struct ServerFigures: Encodable {
      var cpuMicrosPerPacket, packetsPerSecond, cpuShare: Double
      var rssBytes, addedBytes: UInt64
      init(_ result: ServerUsage.Result) {
        cpuMicrosPerPacket = result.cpuMicrosPerPacket
        packetsPerSecond = result.packetsPerSecond
        cpuShare = result.cpuShare
        rssBytes = result.rssBytes
        addedBytes = result.addedBytes
      }
    }

    struct Own: Encodable {
      var cpu: Double
      var threads: [Double]
      var socketDrops: UInt64
      var lateMs: Times
      /// Why the load test itself determined the latency, or the join times.
      var bottleneck: String?
      init(_ usage: OwnUsage) {
        cpu = usage.cpu
        threads = usage.threads
        socketDrops = usage.socketDrops
        lateMs = Times(usage.lateness)
        bottleneck = usage.bottleneck
      }
    }

    struct Step: Encodable {
      var participants: Int
      var packetsPerSecond, loss: Double
      var latencyMs: Times
      var audio: Audio
      var server: ServerFigures?
      var own: Own
      var limit: String?
      init(_ step: RampStep) {
        participants = step.participants
        packetsPerSecond = step.measurement.packetsPerSecond
        loss = step.measurement.delivery.loss
        latencyMs = Times(step.measurement.latency)
        audio = Audio(step.measurement)
        server = step.measurement.server.map(ServerFigures.init)
        own = Own(step.measurement.own)
        limit = step.limit
      }
    }

    struct Outages: Encodable {
      var gapMs: Times
      var gaps, away: Int
      init(_ returns: Returns) {
        gapMs = Times(returns.gaps)
        gaps = returns.gapCount
        away = returns.away
      }
    }

    struct Stay: Encodable {
      /// The frames that opened, by epoch.
      var opened: [String: UInt64]
      var refused: UInt64
      init(_ count: StayCount) {
        opened = Dictionary(uniqueKeysWithValues: count.epochs.map { (String($0.number), $0.opened) })
        refused = count.refused
      }
    }

    var scenario: String
    var calls, participants, publishers, joined: Int
    var durationSeconds: Double
    var videoKbps: Int
    var seed: UInt64
    var expected, received: UInt64
    var loss: Double
    var frames, decryptFailures, guestFrames, nacked, retransmitted, impaired: UInt64
    var latencyMs: Times
    var audio: Audio?
    /// nil without `--layers`.
    var layers: Layers?
    var joinMs: Times
    /// Joins, including those of participants that came back.
    var joins: Int
    var server: ServerFigures?
    /// While participants joined, and while the test measured.
    var joining, own: Own?
    var outages: Outages?
    /// The stays of each participant, in order.
    var stays: [[Stay]]
    var costs: [ChangeCost]
    var steps: [Step]
    var lastGoodStep: Int?
    var samples: [Sample]
    var interrupted: String?
    var failures, faults: [String]
    var ok: Bool
  }
}

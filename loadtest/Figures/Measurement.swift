/// The figures of the measurement, or of one step of a ramp.
struct Measurement: Sendable {
  var seconds: Double
  /// Arrivals at all participants that stayed.
  var delivery: PacketArrivals
  /// The audio among them.
  var audio: PacketArrivals
  /// Arrivals among participants whose paths this program does not impair.
  var undisturbed: PacketArrivals
  var latency: LatencyHistogram
  var audioLatency: LatencyHistogram
  /// All zero without layers.
  var layers: LayerCount
  var decryptFailures: UInt64
  /// RTP packets that arrived.
  var packets: UInt64
  var server: ServerUsage.Result?
  var own: OwnUsage

  /// The metrics that `figure` has.
  static let metrics: [Metric] = [
    .loss, .p50, .p90, .p99, .max, .audioLoss, .audioP99, .undecryptable, .undecodable, .freeze, .packets, .cpu,
    .cpuPerPacket, .memory, .ownCPU,
  ]

  var packetsPerSecond: Double { seconds > 0 ? Double(packets) / seconds : 0 }

  /// The value of a metric; nil when it was not measured.
  func figure(_ metric: Metric) -> Double? {
    func late(_ share: Double) -> Double? { latency.count > 0 ? latency.milliseconds(atShare: share) : nil }
    return switch metric {
    case .loss: delivery.expected > 0 ? delivery.loss : nil
    case .p50: late(0.5)
    case .p90: late(0.9)
    case .p99: late(0.99)
    case .max: late(1)
    case .audioLoss: audio.expected > 0 ? audio.loss : nil
    case .audioP99: audioLatency.count > 0 ? audioLatency.milliseconds(atShare: 0.99) : nil
    case .undecryptable: Double(decryptFailures)
    case .undecodable: layers.total > 0 ? Double(layers.undecodable) / Double(layers.total) : nil
    case .freeze: layers.total > 0 ? Double(layers.longestGap) / 1e6 : nil
    case .packets: packetsPerSecond
    case .cpu: server?.cpuShare
    case .cpuPerPacket: server.map { $0.cpuMicrosPerPacket / 1_000 }
    case .memory: server.map { Double($0.rssBytes) }
    case .ownCPU: own.busiestThread
    case .joinP50, .joinP99, .joinMax, .joined, .rejoined, .rejoinP99: nil
    }
  }
}

/// One step of a ramp.
struct RampStep: Sendable {
  /// Participants that were in the call.
  var participants: Int
  var measurement: Measurement
  /// Why the ramp ends here; nil for a step within the limits.
  var limit: String?

  /// - Parameters:
  ///   - joined: the number of participants that joined.
  ///   - conditions: the first one that holds ends the ramp.
  init(_ participants: Int, joined: Int, _ measurement: Measurement, until conditions: [Condition]) {
    self.participants = participants
    self.measurement = measurement
    limit =
      joined < participants
      ? "\(joined) of \(participants) joined"
      : conditions.lazy.compactMap { $0.failure(measurement.figure($0.metric)) }.first
  }
}

/// The figures of about a second of a test with calls.
struct Sample: Sendable, Hashable, Encodable {
  /// Since the test began.
  var seconds = 0.0
  /// The phase of the test.
  var phase = ""
  /// Participants that are in their calls with media and a key.
  var joined = 0
  var packetsPerSecond = 0.0
  var megabitsPerSecond = 0.0
  /// One-way latency of the frames that arrived; nil without any.
  var p50Ms, p90Ms, p99Ms, maxMs: Double?
  /// Packets given up as lost, as a share of those expected.
  var loss = 0.0
  /// Decodable frames a second of each layer, the lowest first; empty without layers.
  var layers: [Double] = []
  /// Share of a core, and bytes; nil when the server's process is not known.
  var serverCPU, serverMemory: Double?
  /// Share of a core of the whole load test, and of its busiest media thread.
  var ownCPU = 0.0
  var busiestThread = 0.0
  /// Datagrams that were lost on this side, for lack of buffer.
  var socketDrops: UInt64 = 0
}

extension Sample {
  /// Decodable frames a second of a layer; nil without layers.
  func frames(of rank: Int) -> Double? { layers.indices.contains(rank) ? layers[rank] : nil }
}

/// The state of the running test at one moment.
struct Reading: Sendable {
  var nanoseconds: UInt64
  /// The counts of each media thread, with the time at which they were published.
  var threads: [(at: UInt64, tally: Tally)]
  var joined: Int
  /// CPU time in nanoseconds.
  var ownCPU: UInt64
  /// nil when the server's process is not known.
  var serverCPU, serverMemory: UInt64?

  /// The figures for the time since `earlier`.
  func sample(since earlier: Reading, start: UInt64, phase: String) -> Sample {
    func share(_ cpu: UInt64, _ before: UInt64, _ time: UInt64) -> Double {
      time == 0 ? 0 : Double(cpu - min(before, cpu)) / Double(time)
    }
    var sample = Sample()
    let time = nanoseconds - min(earlier.nanoseconds, nanoseconds)
    sample.seconds = Double(nanoseconds - min(start, nanoseconds)) / 1e9
    sample.phase = phase
    sample.joined = joined
    var latency = LatencyHistogram()
    var layers = [Double](repeating: 0, count: CameraLayer.all.count)
    var (received, lost) = (UInt64(0), UInt64(0))
    for (now, before) in zip(threads, earlier.threads) {
      let tally = now.tally
      // A thread publishes its counts a few times a second, so their own times say how long an interval they cover.
      let own = now.at - min(before.at, now.at)
      guard own > 0 else { continue }
      let packets = tally.packetsReceived - before.tally.packetsReceived
      received += packets
      lost += tally.abandoned - before.tally.abandoned
      sample.packetsPerSecond += Double(packets) * 1e9 / Double(own)
      sample.megabitsPerSecond += Double(tally.bytesReceived - before.tally.bytesReceived) * 8e3 / Double(own)
      sample.busiestThread = max(
        sample.busiestThread, share(tally.threadNanoseconds, before.tally.threadNanoseconds, own))
      sample.socketDrops += tally.socketDrops - min(before.tally.socketDrops, tally.socketDrops)
      latency.merge(tally.latency.since(before.tally.latency))
      let frames = tally.layers.since(before.tally.layers).decodable
      for rank in layers.indices { layers[rank] += Double(frames[rank]) * 1e9 / Double(own) }
    }
    if threads.contains(where: { $0.tally.layers.total > 0 }) { sample.layers = layers }
    sample.loss = received + lost == 0 ? 0 : Double(lost) / Double(received + lost)
    if latency.count > 0 {
      sample.p50Ms = latency.milliseconds(atShare: 0.5)
      sample.p90Ms = latency.milliseconds(atShare: 0.9)
      sample.p99Ms = latency.milliseconds(atShare: 0.99)
      sample.maxMs = latency.maximumMilliseconds
    }
    sample.ownCPU = share(ownCPU, earlier.ownCPU, time)
    if let serverCPU, let before = earlier.serverCPU { sample.serverCPU = share(serverCPU, before, time) }
    sample.serverMemory = serverMemory.map { Double($0) }
    return sample
  }
}

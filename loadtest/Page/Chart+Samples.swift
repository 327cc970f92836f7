/// The plots of a test with calls.
extension Chart {
  private static let barCount = 36

  static func all(_ samples: [Sample], latency: LatencyHistogram, joins: LatencyHistogram) -> [Chart] {
    let time = { (title: String, unit: String, lines: [(String, (Sample) -> Double?)]) in
      Chart(
        title: title, unit: unit,
        content: .lines(
          lines.map { name, value in Line(name: name, points: samples.map { ($0.seconds, value($0)) }) }
            .filter { $0.points.contains { $0.y != nil } }, xUnit: "s"))
    }
    let layers = CameraLayer.all.enumerated().map { rank, layer in
      (layer.rid, { (sample: Sample) in sample.frames(of: rank) })
    }
    let hasLayers = samples.contains { !$0.layers.isEmpty }
    return [
      Chart(title: "One-way latency", unit: "frames", content: .bars(latency.bars(barCount))),
      time("Latency over time", "ms", [("p50", \.p50Ms), ("p99", \.p99Ms)]),
      time("Packets received", "packets/s", [("packets", \.packetsPerSecond)]),
      time("Loss", "% of the packets", [("loss", { $0.loss * 100 })]),
    ] + (hasLayers ? [time("Pictures by layer", "frames/s", layers)] : []) + [
      time(
        "CPU", "% of a core",
        [
          ("server", { $0.serverCPU.map { $0 * 100 } }), ("load test", { $0.ownCPU * 100 }),
          ("its busiest media thread", { $0.busiestThread * 100 }),
        ]),
      time("Memory of the server", "MiB", [("memory", { $0.serverMemory.map { $0 / 1_048_576 } })]),
      time("Joined", "participants", [("joined", { Double($0.joined) })]),
      Chart(title: "Join times", unit: "joins", content: .bars(joins.bars(barCount))),
    ]
  }
}

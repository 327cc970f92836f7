import Contract
import MediaPlane
import Reels
import Testing

@testable import ConclaveServer

@Test func measurementsAreAddedUpInBuckets() {
  let measurements = Measurements()
  for rtt in [10.0, 25, 26, 5000] { measurements.add(QualityNumbers(rtt: rtt)) }
  let values = measurements.values
  #expect(values.roundTrip.counts == [2, 1, 0, 0, 0, 0, 0, 1])
  #expect(abs(values.roundTrip.sum - 5.061) < 1e-9)
  #expect(values.loss.counts.allSatisfy { $0 == 0 })
}

@Test(arguments: [Double.nan, .infinity, -1, 1e300]) func numbersThatCannotBeAreLeftOut(value: Double) {
  let measurements = Measurements()
  measurements.add(QualityNumbers(rtt: value, loss: value))
  #expect(measurements.values.roundTrip.sum == 0 && measurements.values.loss.counts.allSatisfy { $0 == 0 })
}

@Test func aHistogramIsWrittenCumulatively() {
  let measurements = Measurements()
  for rtt in [10.0, 30, 9999] { measurements.add(QualityNumbers(rtt: rtt)) }
  var reels = ReelStatistics()
  reels.backlog = 7
  reels.counts.gaps[.serverLate] = 2
  reels.counts.drops[.backlog] = 5
  let text = Metrics.text(
    media: [], signaling: nil, calls: (2, 5), lastingLinks: 7,
    outcomes: CallCounts(ends: [.endedByOperator: 3], joins: [.neverConnected: 4]), waitingForDisk: 0,
    backlog: (0, [:]), guests: nil,
    store: StoreHealth.Statistics(), recordings: nil, reels: reels, backEnd: nil, webPush: nil, spans: nil,
    measured: measurements.values, process: ProcessFacts())
  let lines = text.split(separator: "\n")
  #expect(lines.contains(#"conclave_calls_ended_total{reason="ended-by-operator"} 3"#))
  #expect(lines.contains(#"conclave_calls_ended_total{reason="all-left"} 0"#))
  #expect(lines.contains(#"conclave_joins_total{outcome="never-connected"} 4"#))
  #expect(lines.contains(#"conclave_client_round_trip_seconds_bucket{le="0.025"} 1"#))
  #expect(lines.contains(#"conclave_client_round_trip_seconds_bucket{le="0.05"} 2"#))
  #expect(lines.contains(#"conclave_client_round_trip_seconds_bucket{le="+Inf"} 3"#))
  #expect(lines.contains("conclave_client_round_trip_seconds_count 3"))
  #expect(lines.contains("conclave_lasting_links 7"))
  #expect(lines.contains("conclave_recording_backlog_bytes 7"))
  #expect(lines.contains(#"conclave_recording_gaps_total{why="serverLate"} 2"#))
  #expect(lines.contains(#"conclave_recording_dropped_frames_total{reason="backlog"} 5"#))
  #expect(lines.contains("conclave_calls 2") && lines.contains("conclave_participants 5"))
  // The figures are those of this process, so none is missing.
  for name in ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds", "start_time_seconds"] {
    let value = lines.first { $0.hasPrefix("process_\(name) ") }?.split(separator: " ").last.flatMap { Double($0) }
    #expect(value ?? 0 > 0, "process_\(name)")
  }
}

import Contract
import Testing

@testable import ConclaveServer

@Test func measurementsAreAddedUpInBuckets() {
  let measurements = Measurements()
  for rtt in [10.0, 25, 26, 5000] { measurements.add(QualityNumbers(rtt: rtt)) }
  let values = measurements.values
  #expect(values.roundTrip.counts == [2, 1, 0, 0, 0, 0, 0, 1])
  #expect(values.roundTrip.sum == 5061)
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
  let text = Metrics.text(
    media: [], signaling: nil, calls: (2, 5), waitingForDisk: 0, backlog: (0, [:]), store: StoreHealth.Statistics(),
    backEnd: nil,
    measured: measurements.values)
  let lines = text.split(separator: "\n")
  #expect(lines.contains(#"conclave_client_round_trip_milliseconds_bucket{le="25.0"} 1"#))
  #expect(lines.contains(#"conclave_client_round_trip_milliseconds_bucket{le="50.0"} 2"#))
  #expect(lines.contains(#"conclave_client_round_trip_milliseconds_bucket{le="+Inf"} 3"#))
  #expect(lines.contains("conclave_client_round_trip_milliseconds_count 3"))
  #expect(lines.contains("conclave_calls 2") && lines.contains("conclave_participants 5"))
}

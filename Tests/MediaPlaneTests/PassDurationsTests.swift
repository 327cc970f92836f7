import Forwarding
import Testing

@testable import MediaPlane

struct PassDurationsTests {
  @Test func aPassCountsUpToItsBound() {
    var durations = PassDurations()
    for microseconds: UInt64 in [0, 50, 51, 1_000, 10_000, 10_001] {
      durations.add(.slots, nanoseconds: microseconds * 1_000)
    }
    durations.add(.timers, nanoseconds: 300_000)
    let counts = durations[.slots].counts
    #expect(counts.indices.map { counts[$0] } == [2, 1, 0, 0, 1, 0, 0, 1, 1])
    #expect(durations[.slots].nanoseconds == 21_102_000)
    #expect(durations[.timers].counts[3] == 1)
    #expect(durations[.reports].nanoseconds == 0)
  }
}

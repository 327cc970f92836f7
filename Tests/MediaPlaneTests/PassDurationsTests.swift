import Forwarding
import Testing

@testable import MediaPlane

struct PassDurationsTests {
  @Test func aPassCountsUpToItsBound() {
    var durations = PassDurations()
    for microseconds in [0, 50, 51, 1_000, 10_000, 10_001] { durations.add(.slots, .microseconds(microseconds)) }
    durations.add(.timers, .microseconds(300))
    let counts = durations[.slots].counts
    #expect(counts.indices.map { counts[$0] } == [2, 1, 0, 0, 1, 0, 0, 1, 1])
    #expect(durations[.slots].nanoseconds == 21_102_000)
    #expect(durations[.timers].counts[3] == 1)
    #expect(durations[.reports].nanoseconds == 0)
  }
}

import Seeded
import Testing

@testable import loadtest

struct LatencyHistogramTests {
  @Test func sharesAreWithinThreePercent() {
    let seed: UInt64 = 9
    var random = SeededGenerator(seed: seed)
    var histogram = LatencyHistogram()
    let values = (0..<5_000).map { _ in
      UInt64.random(in: 1...1 << UInt64.random(in: 11...34, using: &random), using: &random)
    }
    for value in values { histogram.record(nanoseconds: value) }
    let sorted = values.sorted()
    for share in [0.1, 0.5, 0.9, 0.99, 1] {
      let exact = Double(sorted[max(0, Int((5_000 * share).rounded(.up)) - 1)]) / 1_000_000
      let read = histogram.milliseconds(atShare: share)
      #expect(read >= exact * 0.999 && read <= exact * 1.04 + 0.001, "seed \(seed), share \(share)")
    }
    #expect(histogram.maximumMilliseconds == Double(sorted.last!) / 1_000_000)
  }

  @Test func mergingIsAddingUp() {
    var a = LatencyHistogram()
    var b = LatencyHistogram()
    a.record(nanoseconds: 1_000_000)
    b.record(nanoseconds: 9_000_000)
    a.merge(b)
    #expect(a.count == 2)
    #expect(a.maximumMilliseconds == 9)
    #expect(LatencyHistogram().milliseconds(atShare: 0.5) == 0)
  }
}

package import Forwarding
import MediaModel

/// The CPU time of one worker's passes, as histograms. A pass is time in which no packet is forwarded.
package struct PassDurations: Sendable {
  /// Upper bounds in microseconds; the last count covers everything above.
  package static let bounds: InlineArray<8, UInt64> = [50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000]

  package struct Histogram: Sendable {
    /// For each bound the number of passes up to it and above the previous one.
    package private(set) var counts = InlineArray<9, UInt64>(repeating: 0)
    package private(set) var nanoseconds: UInt64 = 0

    mutating func add(_ time: UInt64) {
      var place = 0
      while place < PassDurations.bounds.count, time > PassDurations.bounds[place] * 1_000 { place += 1 }
      counts[place] &+= 1
      nanoseconds &+= time
    }
  }

  private var histograms = InlineArray<5, Histogram>(repeating: Histogram())

  package init() {}

  package subscript(pass: Pass) -> Histogram { histograms[pass.rawValue] }

  /// - Parameter nanoseconds: CPU time, so that other threads of a busy machine do not count.
  mutating func add(_ pass: Pass, nanoseconds: UInt64) { histograms[pass.rawValue].add(nanoseconds) }
}

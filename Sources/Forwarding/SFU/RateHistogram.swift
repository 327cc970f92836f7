/// How often rates fell into each of several ranges.
package struct RateHistogram: Sendable {
  /// The upper bounds of the ranges in bit/s; the last range has none.
  package static let bounds: InlineArray<8, Int> = [
    100_000, 250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000,
  ]

  /// How many rates were in each range.
  package private(set) var counts = InlineArray<9, UInt64>(repeating: 0)
  /// The sum of all rates, in bit/s.
  package private(set) var sum: UInt64 = 0

  package init() {}

  mutating func add(_ rate: Int) {
    var range = 0
    while range < Self.bounds.count, rate > Self.bounds[range] { range += 1 }
    counts[range] &+= 1
    sum &+= UInt64(clamping: rate)
  }
}

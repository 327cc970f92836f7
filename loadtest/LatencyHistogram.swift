import Foundation

/// Counts durations in logarithmic buckets of at most 3 % width, which are small and cheap to fill and to merge.
struct LatencyHistogram: Sendable {
  private var counts = [UInt32](repeating: 0, count: 32 * 40)
  private(set) var count = 0
  private(set) var maximum: UInt64 = 0

  mutating func record(nanoseconds: UInt64) {
    let microseconds = nanoseconds / 1000
    counts[min(counts.count - 1, Self.bucket(microseconds))] += 1
    count += 1
    maximum = max(maximum, nanoseconds)
  }

  mutating func merge(_ other: LatencyHistogram) {
    for i in counts.indices { counts[i] += other.counts[i] }
    count += other.count
    maximum = max(maximum, other.maximum)
  }

  /// The values that were added after `earlier`, a former state of this histogram; the maximum is that of the highest
  /// bucket.
  func since(_ earlier: LatencyHistogram) -> LatencyHistogram {
    var rest = LatencyHistogram()
    for i in counts.indices where counts[i] > earlier.counts[i] {
      rest.counts[i] = counts[i] - earlier.counts[i]
      rest.count += Int(rest.counts[i])
      rest.maximum = min(maximum, Self.upperEnd(i) * 1_000)
    }
    return rest
  }

  /// A part of the range of values, with the number of values in it. The bounds are in milliseconds.
  struct Bar: Sendable, Hashable, Encodable {
    var from, to: Double
    var count: Int
  }

  /// The values in `number` parts of a logarithmic scale, from the lowest to the highest; empty without values.
  func bars(_ number: Int) -> [Bar] {
    guard let first = counts.firstIndex(where: { $0 > 0 }), let last = counts.lastIndex(where: { $0 > 0 }) else {
      return []
    }
    let low = Double(max(1, first == 0 ? 1 : Self.upperEnd(first - 1))) / 1_000
    let ratio = pow(max(Double(Self.upperEnd(last)) / 1_000 / low, 1.1), 1 / Double(number))
    var bars = (0..<number).map {
      Bar(from: low * pow(ratio, Double($0)), to: low * pow(ratio, Double($0 + 1)), count: 0)
    }
    for i in first...last where counts[i] > 0 {
      let place = Int((log(Double(Self.upperEnd(i)) / 1_000 / low) / log(ratio) - 0.001).rounded(.down))
      bars[min(max(0, place), number - 1)].count += Int(counts[i])
    }
    return bars
  }

  /// The upper end of the bucket that holds this share of the values, in milliseconds; 0 without values.
  func milliseconds(atShare share: Double) -> Double {
    let wanted = max(1, Int((Double(count) * share).rounded(.up)))
    var seen = 0
    for (index, count) in counts.enumerated() where count > 0 {
      seen += Int(count)
      if seen >= wanted { return min(Double(Self.upperEnd(index)) / 1000, maximumMilliseconds) }
    }
    return 0
  }

  var maximumMilliseconds: Double { Double(maximum) / 1_000_000 }

  /// Each value below 64 has a bucket; above, each power of two has 32.
  private static func bucket(_ value: UInt64) -> Int {
    guard value >= 64 else { return Int(value) }
    let exponent = 63 - value.leadingZeroBitCount - 5
    return 32 * exponent + Int(value >> UInt64(exponent))
  }

  private static func upperEnd(_ bucket: Int) -> UInt64 {
    guard bucket >= 64 else { return UInt64(bucket) + 1 }
    let exponent = bucket / 32 - 1
    return (UInt64(bucket % 32 + 32) + 1) << UInt64(exponent)
  }
}

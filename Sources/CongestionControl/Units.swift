/// A point on the sender's monotonic clock, or a span of it, in µs. A receiver's clock has another origin, so only differences of its times are
/// meaningful.
package typealias Microseconds = Int64

extension Microseconds {
  static let millisecond: Microseconds = 1_000
  static let second: Microseconds = 1_000_000
}

/// The rate in bit/s of `bytes` in `duration`, which is positive. A receiver that reports the same arrival for all packets lets `bytes` grow for
/// days, so it counts up to a terabyte.
func rate(bytes: Int, in duration: Microseconds) -> Int {
  Swift.min(bytes, 1 << 40) * 8_000_000 / Int(Swift.max(1, duration))
}

/// Bytes that `rate` bit/s carry in `duration`.
func bytes(at rate: Int, in duration: Microseconds) -> Int { rate / 8 * Int(duration) / 1_000_000 }

/// The index of slice `index` of a time line in a ring of `count` slices.
func place(_ index: Microseconds, in count: Int) -> Int {
  let remainder = Int(index % Microseconds(count))
  return remainder < 0 ? remainder + count : remainder
}

/// 64 bits of seconds and fractions (RFC 3550 section 4). The epoch is the sender's own: receivers only compare.
package struct NTPTimestamp: Hashable, Sendable {
  package var rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// `nanoseconds` since any fixed point.
  package init(nanoseconds: UInt64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    rawValue = (seconds & 0xffff_ffff) << 32 | (rest << 32) / 1_000_000_000
  }

  /// Nanoseconds since the same point, modulo 2^32 seconds.
  package var nanoseconds: UInt64 {
    // In range: both products are below 2^62, and the second is a fraction of one second.
    (rawValue >> 32) * 1_000_000_000 + (((rawValue & 0xffff_ffff) * 1_000_000_000) >> 32)
  }

  /// The middle 32 bits, in 1/65,536 s, as in the LSR of report blocks.
  package var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  /// Nanoseconds of a duration in 1/65,536 s (DLSR).
  // In range: 32 bits and 30.
  package static func nanoseconds(ofCompact duration: UInt32) -> UInt64 { (UInt64(duration) * 1_000_000_000) >> 16 }

  /// A duration in 1/65,536 s, at most 2^32 − 1.
  package static func compact(ofNanoseconds duration: UInt64) -> UInt32 {
    let (seconds, rest) = duration.quotientAndRemainder(dividingBy: 1_000_000_000)
    return seconds > 0xffff ? .max : UInt32(seconds << 16 | (rest << 16) / 1_000_000_000)
  }
}

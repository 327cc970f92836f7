import MediaModel

extension Instant {
  var microseconds: Int64 { Int64(nanoseconds / 1_000) }

  /// The time in units of an RTP clock, modulo 2^32.
  func ticks(_ clockRate: UInt32) -> UInt32 {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return UInt32(truncatingIfNeeded: seconds &* UInt64(clockRate) &+ rest &* UInt64(clockRate) / 1_000_000_000)
  }
}

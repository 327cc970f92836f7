/// A token bucket: so many a second on average, so many at once.
struct RateLimit {
  private let interval: UInt64
  private let depth: UInt64
  /// When the bucket will be full again, in nanoseconds of the caller's clock.
  private var fullAt: UInt64 = 0

  init(perSecond: Int, burst: Int) {
    interval = 1_000_000_000 / UInt64(max(1, perSecond))
    depth = interval * UInt64(max(1, burst))
  }

  /// Takes one out of the bucket, on credit if it is empty: nil, or how many nanoseconds to take nothing more.
  mutating func owe(now: UInt64) -> UInt64? {
    fullAt = max(fullAt, now) + interval
    return fullAt - now > depth ? fullAt - now - depth : nil
  }

  /// Takes one out of the bucket: nil, or after how many milliseconds there is one again.
  mutating func take(now: UInt64) -> Int? {
    let full = max(fullAt, now) + interval
    guard full - now <= depth else { return Int((full - now - depth + 999_999) / 1_000_000) }
    fullAt = full
    return nil
  }
}

import MediaModel

/// A token bucket: what one peer may make us send again, since a NACK of 1,200 bytes can ask for 5,000 packets.
struct Budget {
  static let perSecond: UInt64 = 2_000
  static let burst: UInt64 = 500

  private var tokens = Budget.burst
  private var filled: Instant

  init(now: Instant) { filled = now }

  mutating func take(_ now: Instant) -> Bool {
    let step = 1_000_000_000 / Self.perSecond
    let earned = UInt64(max(0, filled.duration(to: now).nanoseconds)) / step
    if earned > 0 {
      tokens = min(Self.burst, tokens + min(earned, Self.burst))
      filled = Instant(nanoseconds: filled.nanoseconds &+ earned &* step)
    }
    guard tokens > 0 else { return false }
    tokens -= 1
    return true
  }
}

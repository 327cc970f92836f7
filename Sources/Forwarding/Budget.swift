import MediaModel

/// A token bucket: how much one peer may make us send.
struct Budget {
  private let step: UInt64
  private let burst: UInt64
  private var tokens: UInt64
  private var filled: Instant

  init(perSecond: UInt64, burst: UInt64, now: Instant) {
    step = 1_000_000_000 / perSecond
    self.burst = burst
    tokens = burst
    filled = now
  }

  mutating func take(_ now: Instant) -> Bool {
    let earned = UInt64(max(0, filled.duration(to: now).nanoseconds)) / step
    if earned > 0 {
      tokens = min(burst, tokens + min(earned, burst))
      filled = Instant(nanoseconds: filled.nanoseconds &+ earned &* step)
    }
    guard tokens > 0 else { return false }
    tokens -= 1
    return true
  }
}

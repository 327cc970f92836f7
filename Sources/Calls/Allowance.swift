import MediaModel

/// So many a second, with a burst: a bucket that leaks.
struct Allowance {
  let rate: Int
  let burst: Int
  /// In thousandths.
  private var level = 0
  private var at = Timestamp(milliseconds: 0)

  init(rate: Int, burst: Int) {
    self.rate = rate
    self.burst = burst
  }

  /// Milliseconds until `count` may be taken; 0: now. `count` is at most the burst.
  func wait(for count: Int, now: Timestamp) -> Int {
    let surplus = level(at: now) + 1_000 * (count - burst)
    return surplus <= 0 ? 0 : (surplus + rate - 1) / rate
  }

  mutating func take(_ count: Int, now: Timestamp) {
    level = level(at: now) + 1_000 * count
    at = now
  }

  private func level(at now: Timestamp) -> Int {
    // Emptied long since after this; the product can't overflow.
    let elapsed = min(max(0, now.milliseconds - at.milliseconds), 86_400_000)
    return max(0, level - rate * Int(elapsed))
  }
}

/// A token bucket: a number of tokens a second on average, and a number at once. Time is in nanoseconds of any clock that never runs
/// backwards.
package struct TokenBucket: Hashable, Sendable {
  /// The longest debt of `owe`.
  private static let longestDebt: UInt64 = 10_000_000_000

  /// The nanoseconds after which one token is added.
  private let interval: UInt64
  private let depth: UInt64
  /// When the bucket will be full again.
  private var fullAt: UInt64 = 0

  package init(perSecond: Int, burst: Int) {
    interval = 1_000_000_000 / UInt64(min(max(1, perSecond), 1_000_000_000))
    depth = interval * UInt64(min(max(1, burst), 1 << 30))
  }

  /// Takes `count` tokens, or none.
  /// - Returns: nil, or the nanoseconds until the bucket has `count`. A count above the burst is treated as the burst: a full bucket pays for any count.
  package mutating func take(_ count: Int = 1, now: UInt64) -> UInt64? {
    let full = max(fullAt, now) &+ min(cost(of: count), depth)
    guard full - now <= depth else { return full - now - depth }
    fullAt = full
    return nil
  }

  /// Takes `count` tokens, on credit if there are too few.
  /// - Returns: nil, or the nanoseconds until the debt is paid.
  package mutating func owe(_ count: Int = 1, now: UInt64) -> UInt64? {
    fullAt = min(max(fullAt, now) &+ cost(of: count), now &+ depth &+ Self.longestDebt)
    return fullAt - now > depth ? fullAt - now - depth : nil
  }

  package func isFull(now: UInt64) -> Bool { fullAt <= now }

  private func cost(of count: Int) -> UInt64 { interval * UInt64(min(max(0, count), 1 << 30)) }
}

extension UInt64 {
  /// Nanoseconds as milliseconds, rounded up.
  package var millisecondsRoundedUp: Int { Int(self / 1_000_000) + (self % 1_000_000 == 0 ? 0 : 1) }
}

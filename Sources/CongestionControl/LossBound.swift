/// A bound of the target for a time, in bit/s: after loss that followed the rate, and to compare the loss at a lower rate.
struct LossBound: Sendable {
  /// `length`: the time that it was set for.
  private(set) var last: (rate: Int, until: Microseconds, length: Microseconds)?
  /// When losses last set or lowered it.
  private var setAt: Microseconds = .min
  /// When the rate was last lowered to compare the loss.
  private var comparedAt: Microseconds = .min

  /// nil while there is none.
  func current(now: Microseconds) -> Int? { last.flatMap { now <= $0.until ? $0.rate : nil } }

  /// Losses are judged again 2 s after they have set it.
  func isFresh(now: Microseconds) -> Bool { setAt != .min && now - setAt <= 2 * .second }

  func hasCompared(within time: Microseconds, now: Microseconds) -> Bool {
    comparedAt != .min && now - comparedAt <= time
  }

  /// Loss followed the rate. Again within the same time after the last one: wait longer.
  mutating func set(to rate: Int, now: Microseconds) {
    setAt = now
    let before = last.flatMap { now - $0.until < 2 * $0.length ? $0.length : nil }
    set(to: rate, for: before.map { min(32 * .second, $0 * 2) } ?? 8 * .second, now: now)
  }

  /// Much is lost below it, too.
  mutating func lower(to rate: Int, now: Microseconds) {
    setAt = now
    last?.rate = rate
  }

  mutating func compare(at rate: Int, for length: Microseconds, now: Microseconds) {
    comparedAt = now
    set(to: rate, for: length, now: now)
  }

  mutating func set(to rate: Int, for length: Microseconds, now: Microseconds) {
    last = (rate, now + length, length)
  }
}

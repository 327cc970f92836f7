/// Halves the target while packets leave and no reports arrive: a lost report must not keep a rate alive.
struct Watchdog: Sendable {
  private static let period = 500 * Microseconds.millisecond

  /// The target before the silence; nil while reports come.
  private(set) var before: Int?
  private var heard: Microseconds
  private var firstUnheard: Microseconds?
  private var acted: Microseconds = .min

  init(now: Microseconds) { heard = now }

  mutating func sent(now: Microseconds) { if firstUnheard == nil { firstUnheard = now } }

  /// A report on packets has arrived.
  /// - Returns: the target before the silence, if there was one.
  mutating func reported(now: Microseconds) -> Int? {
    heard = now
    firstUnheard = nil
    defer { before = nil }
    return before
  }

  /// - Returns: whether to halve the target now.
  mutating func isSilent(target: Int, roundTrip: Microseconds, now: Microseconds) -> Bool {
    let patience = max(Self.period, 3 * roundTrip + 150 * .millisecond)
    guard let firstUnheard, now - max(heard, firstUnheard) > patience, acted == .min || now - acted >= Self.period
    else { return false }
    acted = now
    if before == nil { before = target }
    return true
  }
}

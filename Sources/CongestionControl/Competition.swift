/// Whether another flow keeps the queue full, as TCP does until it loses packets. Yielding to it only gives it the link.
///
/// Our own queue shrinks when we send less. A queue that has not shrunk 2 s after the last cut is not ours.
struct Competition: Sendable {
  private static let patience = 2 * Microseconds.second

  private(set) var isPresent = false
  private var since: Microseconds?
  private var clearSince: Microseconds?
  /// The last cut, and the queue at that time in µs.
  private var cut: (at: Microseconds, standing: Microseconds)?

  /// How long the queue has stood, in µs.
  func standingTime(now: Microseconds) -> Microseconds { since.map { now - $0 } ?? 0 }

  /// The rate was cut because of the queue.
  mutating func wasCut(standing: Microseconds, now: Microseconds) { cut = (now, standing) }

  mutating func observe(standing: Microseconds, gate: Microseconds, now: Microseconds) {
    guard standing >= gate else {
      let clear = clearSince ?? now
      clearSince = clear
      since = nil
      cut = nil
      // A competitor that was there a moment ago fills the queue again.
      if now - clear > .second { isPresent = false }
      return
    }
    clearSince = nil
    if since == nil { since = now }
    if let cut, now - cut.at >= Self.patience, standing * 10 >= cut.standing * 8 { isPresent = true }
  }
}

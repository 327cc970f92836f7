import MediaModel

/// One node's view of the others: who is to be declared dead.
///
/// It counts only time in which the store answered it quickly. So a store that is slow, or away, kills nobody.
struct Watch {
  private struct Window {
    var commits: UInt64
    var since: Instant
  }

  private var windows: [Incarnation: Window] = [:]
  private var asked: Instant?
  private var answered: Instant
  private(set) var living: Set<Incarnation> = []

  init(now: Instant) { answered = now }

  /// Whether to ask now.
  mutating func tick(now: Instant, _ times: Times) -> Bool {
    guard asked == nil, answered.duration(to: now) >= times.poll else { return false }
    asked = now
    return true
  }

  mutating func fail(now: Instant) {
    asked = nil
    answered = now
    windows = [:]
  }

  /// The dead nodes, and the silent ones, which should be declared dead, with the commits that were seen.
  mutating func take(_ rows: [NodeRow], now: Instant, _ times: Times) -> (dead: [Incarnation], silent: [NodeRow]) {
    guard let asked else { return ([], []) }
    if asked.duration(to: now) > times.goodPoll || answered.duration(to: asked) > times.goodPoll { windows = [:] }
    self.asked = nil
    answered = now
    var next: [Incarnation: Window] = [:]
    var silent: [NodeRow] = []
    for row in rows where !row.isDead {
      let window = windows[row.node].flatMap { $0.commits == row.commits ? $0 : nil }
      next[row.node] = window ?? Window(commits: row.commits, since: now)
      if let window, window.since.duration(to: now) >= times.lease { silent.append(row) }
    }
    windows = next
    living = Set(next.keys)
    return (rows.filter(\.isDead).map(\.node), silent)
  }
}

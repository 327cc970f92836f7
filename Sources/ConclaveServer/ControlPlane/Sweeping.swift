import MediaModel
import Persistence

/// Clears what was kept long enough, an hour after the last time, a short step each second.
struct Sweeping {
  private static let pause = Duration.seconds(3_600)

  private let days: Int
  private var next: Instant?

  init(days: Int) { self.days = days }

  mutating func step(_ store: Store, at time: Timestamp, now: Instant) {
    guard next.map({ $0 <= now }) ?? true else { return }
    // A failed step is retried with the next sweep.
    let hasMore = (try? store.sweep(now: time, historyDays: days)) ?? false
    if !hasMore { next = now.advanced(by: Self.pause) }
  }
}

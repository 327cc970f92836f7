import Foundation
import LinuxIO
package import MediaModel

/// The wall clock as it stood at the start, carried on by the monotonic clock: it never jumps, so no ring and no token expires early or twice.
package struct WallClock: Sendable {
  private let start: Timestamp
  private let origin: Instant

  package init() {
    start = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    origin = MonotonicClock.now()
  }

  package func now() -> Timestamp { start + origin.duration(to: MonotonicClock.now()) }
}

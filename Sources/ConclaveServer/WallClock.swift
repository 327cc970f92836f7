import Foundation
import LinuxIO
package import MediaModel

/// The time of day, in two forms: one that never jumps, for the calls, and one that follows the machine's clock, for what others compare with their own clocks.
package struct WallClock: Sendable {
  private let start: Timestamp
  private let origin: Instant
  private let machine: @Sendable () -> Timestamp
  /// The sum of all settings of the machine's clock since the start.
  private let steps = LiveValue(Duration.zero)

  /// - Parameter machine: reads the machine's clock.
  package init(
    machine: @escaping @Sendable () -> Timestamp = {
      Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
  ) {
    self.machine = machine
    start = machine()
    origin = MonotonicClock.sinceBoot()
  }

  /// The machine's clock as it was at the start, continued by a clock that never jumps and that counts while the machine is suspended: no ring expires early or
  /// twice.
  package func now() -> Timestamp { start + origin.duration(to: MonotonicClock.sinceBoot()) }

  /// The machine's clock, which may be set at any time: for the times in tokens, TURN credentials and signatures.
  package func machineTime() -> Timestamp { machine() }

  /// Times of `now()` lag behind the machine's clock by this much because it was set. Times reported to people are
  /// later by it.
  var lag: Duration { steps.value }

  /// The machine's clock was set by this much. Called on one thread.
  func follow(_ step: Duration) { steps.set(steps.value + step) }
}

/// Notices that the machine's clock was set while the server ran.
struct ClockWatch {
  /// A slower drift is normal for clocks, and corrected by NTP.
  private static let least = Duration.seconds(2)

  /// Both agree at the start.
  private var offset = Duration.zero

  /// Call it each second.
  /// - Parameters:
  ///   - machine: the time of the machine's clock.
  ///   - steady: the time of a clock that never jumps, and that agreed with the machine's at the start.
  /// - Returns: by how much the clock was set since the last call or the start, forwards or backwards; nil if it was not.
  mutating func step(machine: Timestamp, steady: Timestamp) -> Duration? {
    let now = machine - steady
    defer { offset = now }
    guard (now - offset).magnitude >= Self.least else { return nil }
    return now - offset
  }
}

extension Duration {
  fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}

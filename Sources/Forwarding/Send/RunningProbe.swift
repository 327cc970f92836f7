import CongestionControl
import MediaModel

/// A probe that is being sent. Packets of any kind count toward it until it is complete.
struct RunningProbe {
  /// The interval between two checks for due packets.
  static let interval = Duration.milliseconds(5)
  private static let longest = Duration.milliseconds(500)

  let order: ProbeOrder
  private let began: Instant
  private(set) var bytes = 0
  private(set) var packets = 0

  init(_ order: ProbeOrder, now: Instant) {
    self.order = order
    began = now
  }

  mutating func sent(_ size: Int) {
    bytes += size
    packets += 1
  }

  /// All of it was sent, or it takes too long.
  func isOver(_ now: Instant) -> Bool {
    bytes >= order.bytes && packets >= order.packets || began.duration(to: now) > Self.longest
  }

  /// Whether the next packet is due at the rate of the order.
  func isDue(_ now: Instant) -> Bool {
    bytes <= order.rate / 8 * Int(began.duration(to: now).nanoseconds / 1_000) / 1_000_000
  }
}

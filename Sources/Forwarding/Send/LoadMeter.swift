import MediaModel
import Octets

/// The cost of the packets to one call's receivers on this worker, measured over half a second each. In flat memory, as each packet changes it.
///
/// A packet costs about as much as its bytes plus a thousand more, for headers, a place in a run and encryption.
struct LoadMeter {
  /// The sums of a window, or the rates per second.
  struct Cost: Equatable {
    /// Audio, and all copies: the part that is not shed.
    var fixed: UInt64 = 0
    var video: UInt64 = 0
    /// Video to all slots that show it, including those that pause.
    var offered: UInt64 = 0
  }

  private static let window: UInt64 = 500_000_000
  /// A shorter window says nothing about a rate.
  private static let leastWindow: UInt64 = 100_000_000
  private static let packetCost: UInt64 = 1_000

  private var current = Cost()
  private var since: UInt64 = 0
  /// The rate of the previous window.
  private var last = Cost()

  /// A packet arrived.
  /// - Parameters:
  ///   - copies: how many were sent.
  ///   - slots: how many show its stream.
  mutating func add(_ length: Int, copies: UInt64, slots: Int, isVideo: Bool, now: Instant) {
    if now.nanoseconds &- since >= Self.window { close(now: now) }
    let cost = Self.packetCost &+ UInt64(truncatingIfNeeded: length)
    if isVideo {
      current.video &+= cost &* copies
      current.offered &+= cost &* UInt64(truncatingIfNeeded: slots)
    } else {
      current.fixed &+= cost &* copies
    }
  }

  /// A copy was sent again.
  mutating func addCopy(_ length: Int, now: Instant) { add(length, copies: 1, slots: 1, isVideo: false, now: now) }

  /// The rates of the last half second or so, per second. A flood that has just begun counts immediately.
  func rates(now: Instant) -> Cost {
    let elapsed = now.nanoseconds &- since
    guard elapsed >= Self.leastWindow else { return last }
    // Nothing has arrived since.
    guard elapsed < 4 * Self.window else { return Cost() }
    let young = Self.rate(current, of: elapsed)
    guard elapsed < 2 * Self.window else { return young }
    return Cost(
      fixed: max(last.fixed, young.fixed), video: max(last.video, young.video),
      offered: max(last.offered, young.offered))
  }

  private mutating func close(now: Instant) {
    let elapsed = now.nanoseconds &- since
    last = elapsed < 4 * Self.window ? Self.rate(current, of: elapsed) : Cost()
    current = Cost()
    since = now.nanoseconds
  }

  private static func rate(_ cost: Cost, of elapsed: UInt64) -> Cost {
    func rate(_ value: UInt64) -> UInt64 { UInt64(Double(value) / Double(elapsed) * 1e9) }
    return Cost(fixed: rate(cost.fixed), video: rate(cost.video), offered: rate(cost.offered))
  }
}

/// Owns the meter of a call, because its encodings outlive the call.
final class CallLoad {
  var meter: UnsafeMutablePointer<LoadMeter> { box.pointer }
  private let box = Box(LoadMeter())
}

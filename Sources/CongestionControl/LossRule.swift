/// Whether packets are lost because too many are sent.
///
/// A loss while a queue stands is congestion. Loss without a queue is inherent to the path (a radio), unless it comes with a higher rate and was absent
/// at a lower one (a policer, a queue of a few packets). The path's layers provide that comparison: each step up or down is an experiment. Its error is
/// counted in runs of losses, so that one burst is one event.
struct LossRule: Sendable {
  /// One second of sending.
  private struct Window {
    var bytes = 0
    var packets = 0
    var lost = 0
    /// Runs of lost packets.
    var events = 0

    var loss: Double { packets > 0 ? Double(lost) / Double(packets) : 0 }

    static func + (a: Window, b: Window) -> Window {
      Window(
        bytes: a.bytes + b.bytes, packets: a.packets + b.packets, lost: a.lost + b.lost, events: a.events + b.events)
    }

    /// Variance of `loss`: a run of k losses is one draw that counts k times.
    var variance: Double {
      guard packets > 0 else { return 1 }
      let meanRun = Double(lost) / Double(max(1, events))
      return max(loss, 1 / Double(packets)) * (1 - loss) * meanRun / Double(packets)
    }
  }

  private static let memory = 60
  /// The fewest packets at a lower rate that say something about its loss.
  private static let fewest = 100
  /// Loss without a queue above this is never inherent.
  private static let mostInherent = 0.35

  private var windows = [Window](repeating: Window(), count: memory)
  private var second: Microseconds = .min
  private var previousLost = false

  /// Losses while a queue stood, as a share of the packets in the last reports (a moving average of some 60 packets).
  private(set) var congestive = 0.0
  /// All losses, in the same way but slower (some 250 packets): the loss that a probe has to expect.
  private(set) var average = 0.0

  /// Notes whether a packet arrived.
  /// - Parameters:
  ///   - departure: in the order of the numbers.
  ///   - isStanding: whether a queue stood when the report came.
  mutating func reported(lost: Bool, size: Int, departure: Microseconds, isStanding: Bool) {
    let now = departure / .second
    if now > second {
      let steps = second == .min ? Microseconds(Self.memory) : min(now - second, Microseconds(Self.memory))
      for step in 0..<steps { windows[place(now - step, in: Self.memory)] = Window() }
      second = now
    }
    let i = place(now, in: Self.memory)
    windows[i].bytes += size
    windows[i].packets += 1
    if lost {
      windows[i].lost += 1
      if !previousLost { windows[i].events += 1 }
    }
    previousLost = lost
    congestive += ((lost && isStanding ? 1 : 0) - congestive) / 60
    average += ((lost ? 1 : 0) - average) / 250
  }

  /// A packet that was reported lost has arrived.
  mutating func recovered() { average = max(0, average - 1 / 250) }

  mutating func forgetCongestion() { congestive = 0 }

  /// The rate of what was not lost in the last whole second, in bit/s.
  var passed: Int {
    guard second != .min else { return 0 }
    let last = window(1)
    return Int(Double(last.bytes) * (1 - last.loss) * 8)
  }

  /// Whether the loss of the last two seconds follows the rate although no queue stands.
  var followsRate: Bool {
    guard second != .min else { return false }
    let high = window(0) + window(1)
    guard high.packets >= 60, high.events >= 6, high.loss > 0.05 else { return false }
    if high.loss > Self.mostInherent { return true }
    let low = lower(than: high)
    guard low.packets >= Self.fewest else { return false }
    let difference = high.loss - low.loss
    return high.loss > 2 * low.loss + 0.03 && difference * difference > 9 * (high.variance + low.variance)
  }

  /// Whether much is lost, and no lower rate of the last minute explains it.
  var lacksComparison: Bool {
    guard second != .min else { return false }
    let high = window(1) + window(2)
    return high.packets >= 60 && high.events >= 6 && high.loss > 0.15 && lower(than: high).packets < Self.fewest
  }

  /// The seconds with at most three quarters of the rate of `high`, which covers two of them.
  private func lower(than high: Window) -> Window {
    let limit = high.bytes / 2 * 3 / 4
    var low = Window()
    for age in 2..<Self.memory {
      let window = window(age)
      if window.packets >= 20, window.bytes <= limit { low = low + window }
    }
    return low
  }

  private func window(_ age: Int) -> Window {
    windows[place(second - Microseconds(age), in: Self.memory)]
  }
}

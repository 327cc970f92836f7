import MediaModel

/// How long a hole may be mere reordering before it is requested: about the time within which 95 % of a stream's late packets arrive. A fixed time would turn
/// each late packet of a path with jitter into a NACK, or make every loss wait.
struct ReorderTolerance {
  static let least = Duration.milliseconds(5)
  static let most = Duration.milliseconds(30)

  private(set) var duration = Duration.milliseconds(10)

  /// A packet arrived `delay` after the hole that it fills had opened. The step down is so small because a shorter delay is usually further away than a
  /// longer one.
  mutating func late(by delay: Duration) {
    let delay = min(max(delay, Self.least), Self.most)
    duration += (delay - duration) / (delay > duration ? 4 : 1_024)
  }

  /// A packet was lost: waiting for it was in vain.
  mutating func lost() { duration -= (duration - Self.least) / 128 }
}

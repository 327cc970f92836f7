import MediaModel

/// Decides whether the worker sleeps for a moment before it checks its socket again.
///
/// With one packet per wake-up, waking costs more than forwarding. If packets arrive faster than one in 125 µs, the worker therefore takes naps and finds
/// several at a time: about half the CPU for each packet at 10,000 and 30,000 a second, less gain if much audio breaks the runs. Audio waits for the nap,
/// too.
struct NapRule {
  static let length = Duration.microseconds(250)
  /// A nap that finds fewer datagrams than this is not worthwhile.
  private static let worthwhile: UInt64 = 2

  private var lastArrival: Instant?
  private(set) var isDue = false

  /// Called for each batch of datagrams with their number.
  mutating func arrived(_ count: Int, now: Instant) {
    if let lastArrival {
      let gap = now.nanoseconds &- lastArrival.nanoseconds
      let expected = UInt64(count).multipliedReportingOverflow(by: UInt64(Self.length.nanoseconds))
      isDue = expected.overflow || expected.partialValue / Self.worthwhile >= gap
    }
    lastArrival = now
  }

  /// Nothing is due until packets have arrived again.
  mutating func taken() { isDue = false }
}

/// The narrowest link of a path: its rate, and a queue that drops at its tail.
package struct Link: Sendable {
  /// In bit/s.
  package var rate: Int
  /// The queue's length in µs at the current rate.
  package var queue = 200_000
  package var loss = 0.0
  private var busyUntil = 0

  package init(rate: Int) { self.rate = rate }

  /// - Parameters:
  ///   - bytes: the datagram's payload; headers of IP and UDP are added.
  ///   - now: in µs.
  /// - Returns: how long the datagram takes to pass the link, in µs; nil when the queue is full.
  package mutating func delay(of bytes: Int, now: Int) -> Int? {
    let start = max(now, busyUntil)
    guard start - now <= queue else { return nil }
    busyUntil = start + (bytes + 28) * 8 * 1_000_000 / rate
    return busyUntil - now
  }
}

import Seeded

/// The effects of a bad path on datagrams in one direction.
package struct Impairment: Sendable, Hashable {
  /// The share that is lost, 0 to 1, independently for each datagram.
  package var loss = 0.0
  /// In µs, in addition to the real path's delay.
  package var delay = 0
  /// Delays vary uniformly by up to this much around `delay`, in µs. Order is kept, as in a queue.
  package var jitter = 0
  /// In bit/s; nil without a limit.
  package var rate: Int?
  /// The longest time in µs that a datagram waits for the link at `rate`; a datagram that would wait longer is dropped.
  package var queue = 200_000

  package init() {}

  /// The longest time that a datagram can take, in µs, without its own transmission time at `rate`.
  package var longestStay: Int { delay + jitter + (rate == nil ? 0 : queue) }
}

/// One direction of a bad path, with a seed: tells when each datagram arrives, or that it does not.
package struct ImpairedPath: Sendable {
  package let impairment: Impairment
  /// Datagrams lost by chance, and those that found the queue full.
  package private(set) var lost = 0
  package private(set) var queueDrops = 0
  private var link: Link?
  private var random: SeededGenerator
  private var last = 0

  package init(_ impairment: Impairment, seed: UInt64) {
    self.impairment = impairment
    random = SeededGenerator(seed: seed)
    link = impairment.rate.map { Link(rate: $0) }
    link?.queue = impairment.queue
  }

  /// - Parameter now: in µs, never earlier than in a previous call.
  /// - Returns: when a datagram of `bytes` that is sent now arrives, in µs, never before an earlier one; nil when it is
  ///   dropped.
  package mutating func arrival(of bytes: Int, now: Int) -> Int? {
    if impairment.loss > 0, random.uniform() < impairment.loss {
      lost += 1
      return nil
    }
    var passage = 0
    if link != nil {
      guard let delay = link?.delay(of: bytes, now: now) else {
        queueDrops += 1
        return nil
      }
      passage = delay
    }
    let jitter = impairment.jitter == 0 ? 0 : Int((random.uniform() * 2 - 1) * Double(impairment.jitter))
    last = max(last, now + passage + max(0, impairment.delay + jitter))
    return last
  }
}

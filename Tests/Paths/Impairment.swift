import Seeded

/// The damage that a bad path does to datagrams in one direction.
package struct Impairment: Sendable, Hashable {
  /// The share that is lost, 0 to 1, each datagram by itself.
  package var loss = 0.0
  /// In µs, on top of the real path's.
  package var delay = 0
  /// Delays vary evenly by as much around `delay`, in µs. Order is kept, as in a queue.
  package var jitter = 0
  /// In bit/s; nil without a limit.
  package var rate: Int?
  /// The longest time in µs that a datagram waits for the link at `rate`; one that would wait longer is dropped.
  package var queue = 200_000

  package init() {}

  /// The longest time that a datagram can take, in µs, but for its own length at `rate`.
  package var longestStay: Int { delay + jitter + (rate == nil ? 0 : queue) }
}

/// One direction of a bad path, by a seed: says of each datagram when it arrives, or that it does not.
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

  /// - Parameter now: in µs, never before an earlier one.
  /// - Returns: when a datagram of `bytes` that is sent now arrives, in µs, never before one that was sent earlier; nil when it is dropped.
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

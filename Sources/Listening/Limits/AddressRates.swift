import Octets

/// How often source addresses may do something: a bucket for each block.
///
/// An IPv6 line has at least a /64, and often a /56 or a /48 (RFC 6177 section 2), so an attacker who changes the /64 with each request still uses up the
/// buckets of the wider blocks. Those are larger, because their lines may belong to different people.
package struct AddressRates: Sendable {
  /// Blocks that are remembered at the same time.
  static let capacity = 30_000
  /// When no more blocks can be remembered, new ones share a bucket that is this many times as large.
  private static let crowd = 64
  /// Nanoseconds between two searches for blocks to forget.
  private static let searchPause: UInt64 = 1_000_000_000

  private let perSecond: Int
  private let burst: Int
  private var buckets: [AddressBlock: TokenBucket] = [:]
  private var others: TokenBucket
  private var nextSearch: UInt64 = 0

  /// - Parameters: of an IPv4 address, and of an IPv6 /64.
  package init(perSecond: Int, burst: Int) {
    self.perSecond = perSecond
    self.burst = burst
    others = TokenBucket(perSecond: perSecond * Self.crowd, burst: burst * Self.crowd)
  }

  var count: Int { buckets.count }

  func has(perSecond: Int, burst: Int) -> Bool { self.perSecond == perSecond && self.burst == burst }

  /// Counts one, unless that exceeds the limit.
  /// - Returns: nil, or the nanoseconds to wait.
  package mutating func take(from block: AddressBlock, now: UInt64) -> UInt64? {
    if let wait = wait(from: block, now: now) { return wait }
    makeRoom(now: now)
    for block in block.lineage {
      if var bucket = buckets[block] ?? (buckets.count < Self.capacity ? fresh(block) : nil) {
        _ = bucket.take(now: now)
        buckets[block] = bucket
      } else {
        // The widest blocks come last, and are the first to be missing: one of them suffices.
        return others.take(now: now)
      }
    }
    return nil
  }

  /// The nanoseconds that the block would have to wait now; nil for none.
  package func wait(from block: AddressBlock, now: UInt64) -> UInt64? {
    block.lineage.compactMap { block in
      var bucket = buckets[block]
      return bucket?.take(now: now)
    }.max()
  }

  private func fresh(_ block: AddressBlock) -> TokenBucket {
    TokenBucket(perSecond: perSecond * block.lines, burst: burst * block.lines)
  }

  private mutating func makeRoom(now: UInt64) {
    guard buckets.count >= Self.capacity, now >= nextSearch else { return }
    nextSearch = now + Self.searchPause
    buckets = buckets.filter { !$0.value.isFull(now: now) }
  }
}

import MediaModel
import Octets
import Signaling

/// How often tokens for guests may be asked for: from one address, for one call, and in all.
struct GuestRates: Sendable {
  static let perAddress = (perSecond: 1, burst: 20)
  static let perCall = (perSecond: 1, burst: 60)
  static let ofAll = (perSecond: 100, burst: 200)
  /// Addresses, and calls, that are remembered at once.
  static let capacity = 10_000

  private var all = TokenBucket(perSecond: ofAll.perSecond, burst: ofAll.burst)
  private var addresses: [AddressBlock: TokenBucket] = [:]
  private var calls: [CallID: TokenBucket] = [:]

  /// - Parameter address: nil where the bound of an address does not hold.
  /// - Returns: nil, or the nanoseconds to wait.
  mutating func take(from address: AddressBlock?, now: UInt64) -> UInt64? {
    if let address {
      let fresh = TokenBucket(perSecond: Self.perAddress.perSecond, burst: Self.perAddress.burst)
      if let wait = Self.take(address, in: &addresses, fresh, now: now) { return wait }
    }
    return all.take(now: now)
  }

  /// For a call of which a link was shown.
  mutating func take(for call: CallID, now: UInt64) -> UInt64? {
    let fresh = TokenBucket(perSecond: Self.perCall.perSecond, burst: Self.perCall.burst)
    return Self.take(call, in: &calls, fresh, now: now)
  }

  private static func take<Key>(
    _ key: Key, in buckets: inout [Key: TokenBucket], _ fresh: TokenBucket, now: UInt64
  ) -> UInt64? {
    if buckets[key] == nil, buckets.count >= capacity {
      buckets = buckets.filter { !$0.value.isFull(now: now) }
      // More than this number at once is an attack: new addresses wait.
      guard buckets.count < capacity else { return 1_000_000_000 }
    }
    return buckets[key, default: fresh].take(now: now)
  }
}

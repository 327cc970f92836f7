import Contract
import MediaModel
import Octets
import Listening

/// How often people may ask for tokens as guests.
///
/// A valid link is charged to its call, the address, and all together; a renewed token is charged to its guest. The server knows that a link is valid only after
/// checking it, which costs less than the HTTP request that brought it. So invalid links never use up the budget of valid ones. They have separate bounds: per
/// address, and for all. An address is refused without a check only while both are used up.
struct GuestRates: Sendable {
  static let perAddress = (perSecond: 1, burst: 20)
  static let perCall = (perSecond: 1, burst: 60)
  static let perGuest = (perSecond: 1, burst: 5)
  static let ofAll = (perSecond: 100, burst: 200)
  static let waitsPerAddress = (perSecond: 10, burst: 60)
  static let waitsPerLink = (perSecond: 20, burst: 100)
  static let waitsOfAll = (perSecond: 500, burst: 1_000)
  static let wrongOfAll = (perSecond: 500, burst: 1_000)
  /// How many calls, guests and lasting links are remembered at once.
  static let capacity = 10_000

  private var all = TokenBucket(perSecond: ofAll.perSecond, burst: ofAll.burst)
  private var addresses = AddressRates(perSecond: perAddress.perSecond, burst: perAddress.burst)
  private var calls: [CallID: TokenBucket] = [:]
  private var guests: [UserID: TokenBucket] = [:]
  private var waits = TokenBucket(perSecond: waitsOfAll.perSecond, burst: waitsOfAll.burst)
  private var waitingAddresses = AddressRates(perSecond: waitsPerAddress.perSecond, burst: waitsPerAddress.burst)
  private var links: [LinkID: TokenBucket] = [:]
  private var wrong = TokenBucket(perSecond: wrongOfAll.perSecond, burst: wrongOfAll.burst)
  private var wrongAddresses = AddressRates(perSecond: perAddress.perSecond, burst: perAddress.burst)

  // Each returns nil, or the nanoseconds to wait. An address is nil if the bound per address does not apply.

  /// Before anything is checked.
  mutating func look(from address: AddressBlock?, now: UInt64) -> UInt64? {
    guard let address, let wait = wrongAddresses.wait(from: address, now: now) else { return nil }
    // A copy, because checking must not charge it.
    var all = wrong
    return all.take(now: now) == nil ? nil : wait
  }

  /// An invalid link or token was presented.
  mutating func takeWrong(from address: AddressBlock?, now: UInt64) -> UInt64? {
    let wait = wrong.take(now: now)
    guard let address else { return wait }
    return wrongAddresses.take(from: address, now: now) ?? wait
  }

  /// A valid link of the call was presented.
  mutating func take(for call: CallID, from address: AddressBlock?, now: UInt64) -> UInt64? {
    if let address, let wait = addresses.wait(from: address, now: now) { return wait }
    // The call comes before all: one link does not use up the budget of all links.
    if let wait = Self.take(call, in: &calls, Self.perCall, now: now) { return wait }
    if let wait = all.take(now: now) { return wait }
    return address.flatMap { addresses.take(from: $0, now: now) }
  }

  /// A lasting link without a call was presented. Its holder asks again and again, and many may do so at one address.
  mutating func takeWait(at link: LinkID, from address: AddressBlock?, now: UInt64) -> UInt64? {
    if let address, let wait = waitingAddresses.wait(from: address, now: now) { return wait }
    if let wait = Self.take(link, in: &links, Self.waitsPerLink, now: now) { return wait }
    if let wait = waits.take(now: now) { return wait }
    return address.flatMap { waitingAddresses.take(from: $0, now: now) }
  }

  /// The guest presented a token that is still valid.
  mutating func takeRenewal(of guest: UserID, now: UInt64) -> UInt64? {
    Self.take(guest, in: &guests, Self.perGuest, now: now)
  }

  private static func take<Key>(
    _ key: Key, in buckets: inout [Key: TokenBucket], _ rate: (perSecond: Int, burst: Int), now: UInt64
  ) -> UInt64? {
    if buckets[key] == nil, buckets.count >= capacity {
      buckets = buckets.filter { !$0.value.isFull(now: now) }
      // More than this number at once is an attack: new ones wait.
      guard buckets.count < capacity else { return 1_000_000_000 }
    }
    return buckets[key, default: TokenBucket(perSecond: rate.perSecond, burst: rate.burst)].take(now: now)
  }
}

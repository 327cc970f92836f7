import Octets

extension ReplayWindow {
  /// The 48-bit index (rollover counter and sequence number) nearest to the highest one (RFC 3711 section 3.3.1).
  func index(of sequenceNumber: UInt16) -> UInt64 {
    let highest = highest ?? 0
    let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest))
    // In range: the highest has 48 bits.
    let index = Int64(highest) + Int64(step)
    // Nothing precedes the first cycle, so it can only be a jump forward in it; libsrtp decides likewise.
    return index < 0 ? UInt64(sequenceNumber) : UInt64(index)
  }

  /// False if `index` was recorded, is too old to tell, or is beyond the 2^48 packets of one key.
  mutating func admits(_ index: UInt64) -> Bool { index >> 48 == 0 && arrival(of: index) == .new }
}

/// Which of the last 1024 packet indices were seen (RFC 3711 section 3.3.2), and the guess of the index that a 16-bit sequence
/// number stands for (section 3.3.1).
struct ReplayWindow {
  static let size: UInt64 = 1024

  private var highest: UInt64
  /// A ring: index i is bit i mod 1024.
  private var seen = InlineArray<16, UInt64>(repeating: 0)

  /// - Parameter index: of the first packet; it is not recorded yet.
  init(first index: UInt64) { highest = index }

  /// The 48-bit index (rollover counter and sequence number) nearest to the highest one.
  func index(of sequenceNumber: UInt16) -> UInt64 {
    let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest))
    let index = Int64(highest) + Int64(step)
    // Nothing lies before the first cycle, so it can only be a jump forward in it; libsrtp decides the same.
    return index < 0 ? UInt64(sequenceNumber) : UInt64(index)
  }

  /// False when `index` was recorded, is too old to tell, or is beyond the 2^48 packets of one key.
  func admits(_ index: UInt64) -> Bool {
    if index > highest { return index >> 48 == 0 }
    guard highest - index < Self.size else { return false }
    return seen[word(index)] & bit(index) == 0
  }

  /// Only for an index that is admitted and authentic.
  mutating func record(_ index: UInt64) {
    if index > highest {
      if index - highest >= Self.size {
        seen = InlineArray(repeating: 0)
      } else {
        var skipped = highest + 1
        while skipped <= index {
          seen[word(skipped)] &= ~bit(skipped)
          skipped += 1
        }
      }
      highest = index
    }
    seen[word(index)] |= bit(index)
  }

  private func word(_ index: UInt64) -> Int { Int(truncatingIfNeeded: index >> 6 & 15) }
  private func bit(_ index: UInt64) -> UInt64 { 1 << (index & 63) }
}

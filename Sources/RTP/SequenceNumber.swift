/// Order and distance of RTP's 16-bit sequence numbers, which wrap (RFC 1982).
package enum SequenceNumber {
  /// Steps from `a` to `b`: negative if `b` is older, −32,768 if it is exactly opposite.
  @inlinable package static func distance(from a: UInt16, to b: UInt16) -> Int { Int(Int16(bitPattern: b &- a)) }

  @inlinable package static func isNewer(_ a: UInt16, than b: UInt16) -> Bool { distance(from: b, to: a) > 0 }
}

/// Converts 16-bit sequence numbers to indexes that never wrap. Each is taken as the one nearest to the highest seen.
package struct SequenceUnwrapper: Sendable {
  /// The highest index so far; nil before the first.
  package private(set) var highest: UInt64?

  package init() {}

  /// The index of `sequenceNumber`. The first one gets 65,536 more than its number, so that older ones stay positive.
  package mutating func unwrap(_ sequenceNumber: UInt16) -> UInt64 {
    let index = index(of: sequenceNumber)
    if index > highest ?? 0 { highest = index }
    return index
  }

  /// Notes an index found by another unwrapper.
  package mutating func note(_ index: UInt64) { highest = max(highest ?? 0, index) }

  /// The same as `unwrap`, without moving `highest`: for numbers that a peer only mentions.
  package func index(of sequenceNumber: UInt16) -> UInt64 {
    guard let highest else { return 65_536 + UInt64(sequenceNumber) }  // in range: 17 bits
    let distance = SequenceNumber.distance(from: UInt16(truncatingIfNeeded: highest), to: sequenceNumber)
    // Never below 0: `highest` is at least 65,536 and never falls.
    return highest &+ UInt64(bitPattern: Int64(distance))
  }
}

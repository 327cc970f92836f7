import Octets

/// Generic NACK (RFC 4585 section 6.2.1): the sequence numbers of `media` that `sender` misses.
package struct NACK {
  package var sender: UInt32
  package var media: UInt32
  package var missing: MissingSequenceNumbers
}

/// Walks the pid/blp pairs of a NACK: each is a number and a mask of the 16 that follow it. A view.
///
/// A datagram of 1,500 bytes can name over 6,000 numbers, including repeated ones: the code that answers bounds the
/// work.
package struct MissingSequenceNumbers: Sequence, IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  private var pid: UInt16 = 0
  /// The pair's numbers that were not read yet: bit 0 is pid itself, bit n is pid + n.
  private var mask: UInt32 = 0

  /// `bytes` is a whole number of pairs.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package mutating func next() -> UInt16? {
    if mask == 0 {
      guard position + 4 <= bytes.count else { return nil }
      let pair = bytes.bytes
      pid = pair.uint16(at: position)
      mask = UInt32(pair.uint16(at: position + 2)) << 1 | 1
      position += 4
    }
    let bit = mask.trailingZeroBitCount
    mask &= mask &- 1
    return pid &+ UInt16(truncatingIfNeeded: bit)
  }
}

/// FIR (RFC 5104 section 4.3.1): SSRCs that must send a key frame. A repeated `sequence` is the same request again.
package struct FullIntraRequest: Sequence, IteratorProtocol {
  package struct Entry: Equatable, Sendable {
    package var ssrc: UInt32
    package var sequence: UInt8
  }

  package let sender: UInt32
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// `bytes` is a whole number of entries.
  init(sender: UInt32, _ bytes: UnsafeRawBufferPointer) {
    self.sender = sender
    self.bytes = bytes
  }

  package mutating func next() -> Entry? {
    guard position + 8 <= bytes.count else { return nil }
    defer { position += 8 }
    let entry = bytes.bytes
    return Entry(ssrc: entry.uint32(at: position), sequence: entry[position + 4])
  }
}

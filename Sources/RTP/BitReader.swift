import Octets

/// Reads bits, the highest of each byte first, and notes when none are left. It stores only offsets; each call is given the bytes.
struct BitReader {
  private var position: Int
  private let end: Int
  private(set) var isBroken = false

  /// - Parameter bits: how many bits can be read.
  init(at position: Int, bits: Int) {
    self.position = position
    end = bits
  }

  /// The next `count` bits, at most 32. 0 beyond the end.
  mutating func bits(_ count: Int, _ bytes: RawSpan) -> UInt32 {
    guard count <= end - position else {
      isBroken = true
      position = end
      return 0
    }
    var value: UInt32 = 0
    var left = count
    while left > 0 {
      let free = 8 - position & 7
      let taken = min(free, left)
      let part = UInt32(bytes[position >> 3]) >> UInt32(free - taken) & (1 << UInt32(taken) - 1)
      value = value << UInt32(taken) | part
      position += taken
      left -= taken
    }
    return value
  }

  mutating func flag(_ bytes: RawSpan) -> Bool { bits(1, bytes) != 0 }

  /// A number below `count` in as few bits as necessary: `ns(n)` of the AV1 specification, section 4.10.7.
  mutating func number(below count: UInt32, _ bytes: RawSpan) -> UInt32 {
    let width = 32 - count.leadingZeroBitCount
    let short = 1 << UInt32(width) - count
    let value = bits(width - 1, bytes)
    return value < short ? value : value << 1 - short + bits(1, bytes)
  }
}

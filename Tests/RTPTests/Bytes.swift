import RTP

/// Bytes written as hex, blanks between them ignored.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.utf8.filter { $0 > UInt8(ascii: " ") }
  return stride(from: 0, to: digits.count, by: 2).map { nibble(digits[$0]) << 4 | nibble(digits[$0 + 1]) }
}

private func nibble(_ digit: UInt8) -> UInt8 {
  digit <= UInt8(ascii: "9") ? digit - UInt8(ascii: "0") : (digit | 0x20) - UInt8(ascii: "a") + 10
}

/// The bytes that `write` puts into a zeroed buffer of `capacity` bytes; their number is the one that it returns.
func written(capacity: Int = 1_500, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
  var buffer = [UInt8](repeating: 0, count: capacity)
  let length = buffer.withUnsafeMutableBytes(write)
  return Array(buffer.prefix(length))
}

func parsed(_ packet: [UInt8]) -> RTPHeader? { packet.withUnsafeBytes { RTPHeader(parsing: $0.bytes) } }

/// SplitMix64: the same inputs for the same seed, which stands in the test's name.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }
}

extension Array where Element == UInt8 {
  /// A copy with a few bytes flipped, cut or grown.
  func mutated(by generator: inout SeededGenerator) -> [UInt8] {
    var copy = self
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      guard let i = copy.indices.randomElement(using: &generator) else { break }
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: copy[i] = .random(in: .min ... .max, using: &generator)
      case 1: copy[i] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 2: copy[i] = [0, 0x7f, 0x80, 0xff].randomElement(using: &generator)!
      case 3: copy.removeSubrange(i...)
      default: copy.insert(.random(in: .min ... .max, using: &generator), at: i)
      }
    }
    return copy
  }
}

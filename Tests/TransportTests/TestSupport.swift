import MediaModel

/// SplitMix64: the same run for the same seed.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
    return z ^ z >> 31
  }

  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }

  /// `bytes` with a few bytes changed, cut or inserted.
  mutating func mutate(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &self) {
      guard !bytes.isEmpty else { return bytes }
      let i = bytes.indices.randomElement(using: &self) ?? 0
      switch next() % 6 {
      case 0: bytes[i] ^= 1 << (next() % 8)
      case 1: bytes[i] = [0, 1, 0x7f, 0x80, 0xff][Int(next() % 5)]
      case 2: bytes[i] = UInt8(truncatingIfNeeded: next())
      case 3: bytes.removeLast(min(bytes.count, Int(next() % 32)))
      case 4: bytes.insert(contentsOf: self.bytes(Int(next() % 8)), at: i)
      default: bytes.remove(at: i)
      }
    }
    return bytes
  }
}

/// The bytes that hexadecimal digits stand for; blanks and line ends between them mean nothing.
func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap(\.hexDigitValue)
  return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

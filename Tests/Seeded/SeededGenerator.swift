import Octets

/// Random numbers for tests, the same for the same seed, so that a failing run can be repeated.
package struct SeededGenerator: RandomNumberGenerator {
  private var generator: SplitMix64

  package init(seed: UInt64) { generator = SplitMix64(seed: seed) }

  package mutating func next() -> UInt64 { generator.next() }
  package mutating func below(_ n: Int) -> Int { Int.random(in: 0..<n, using: &self) }
  package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
  /// 0..<1.
  package mutating func uniform() -> Double { generator.uniform() }
  package mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }

  /// `bytes` with one to four changes: bits flipped, bytes replaced, removed or inserted, the end cut off.
  package mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &self) {
      guard let i = bytes.indices.randomElement(using: &self) else { return bytes }
      switch below(6) {
      case 0: bytes[i] ^= 1 << UInt8(below(8))
      case 1: bytes[i] = [0, 1, 0x7f, 0x80, 0xff][below(5)]
      case 2: bytes[i] = UInt8(truncatingIfNeeded: next())
      case 3: bytes.removeSubrange((below(2) == 0 ? i : max(i, bytes.count - 32))...)
      case 4: bytes.insert(contentsOf: self.bytes(below(8)), at: i)
      default: bytes.remove(at: i)
      }
    }
    return bytes
  }
}

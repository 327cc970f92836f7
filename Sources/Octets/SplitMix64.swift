/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed. They can be predicted, so nothing secret is made of them.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  @usableFromInline var state: UInt64

  @inlinable package init(seed: UInt64) { state = seed }

  @inlinable package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  /// 0..<1.
  @inlinable package mutating func uniform() -> Double { Double(next() >> 11) / Double(1 << 53) }
}

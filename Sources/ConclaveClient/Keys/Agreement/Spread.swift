import MediaModel
import Octets

/// Random fractions of a time, so that a thousand devices do not request or confirm at once (SplitMix64, from the random
/// joinId).
struct Spread: Sendable {
  private var state: UInt64

  init(_ joinId: [UInt8]) { state = UInt64(networkOrder: joinId.prefix(8)) }

  mutating func part(of limit: Duration) -> Duration {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
    return limit * (Double((word ^ word >> 31) >> 11) / 9_007_199_254_740_992)
  }
}

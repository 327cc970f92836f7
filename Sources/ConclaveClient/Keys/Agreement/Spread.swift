import MediaModel
import Octets

/// Random fractions of a time, so that a thousand devices do not request or confirm at once (seeded by the random joinId).
struct Spread: Sendable {
  private var generator: SplitMix64

  init(_ joinId: [UInt8]) { generator = SplitMix64(seed: UInt64(networkOrder: joinId.prefix(8))) }

  mutating func part(of limit: Duration) -> Duration { limit * generator.uniform() }
}

import MediaModel

/// Bounds the share of a receiver's rate that retransmissions take: no packet twice within a round trip, and no more than a share of the
/// rate in total.
///
/// A browser requests a packet up to 100 times, as if each copy were lost, even when copies wait in a queue. It allocates only in `init`.
struct CopyBudget {
  private static let entries = 256
  /// In bit/s: enough for the losses of the lowest layer.
  private static let least = 64_000
  /// Bytes.
  private static let burst = 20_000

  private struct Entry {
    var ssrc: UInt32 = 0
    var number: UInt16 = 0
    var at = Instant(nanoseconds: 0)
  }

  private var recent = [Entry](repeating: Entry(), count: entries)
  private var credit = burst
  private var settled: Instant

  init(now: Instant) { settled = now }

  /// Whether a packet may be sent again now. If so, `sent` follows.
  /// - Parameters:
  ///   - rate: of the path, in bit/s. Copies take up to 30 %.
  mutating func permits(_ number: UInt16, of ssrc: UInt32, rate: Int, roundTrip: Duration, now: Instant) -> Bool {
    let share = max(Self.least, rate / 10 * 3)
    let elapsed = min(settled.duration(to: now), .seconds(1)).nanoseconds / 1_000
    if elapsed >= 1_000 {
      credit = min(credit + share / 8 * Int(elapsed) / 1_000_000, max(Self.burst, share / 16))
      settled = now
    }
    guard credit > 0 else { return false }
    let place = Int(UInt32(number) ^ ssrc) & (Self.entries - 1)
    let entry = recent[place]
    if entry.ssrc == ssrc, entry.number == number,
      entry.at.duration(to: now) < max(.milliseconds(20), min(roundTrip, .seconds(1)))
    {
      return false
    }
    recent[place] = Entry(ssrc: ssrc, number: number, at: now)
    return true
  }

  mutating func sent(_ bytes: Int) { credit -= bytes }
}

import MediaModel

/// How loud a peer was recently, from the audio levels of its microphone (RFC 6464). Rises over several packets, so that a click counts little, and falls slowly, so
/// that pauses between words do not count.
struct Loudness {
  /// Above silence (127), in thousandths of a decibel.
  private var value = 0
  private var updated = Instant(nanoseconds: 0)

  private static let fallPerSecond = 20_000

  /// - Parameter level: 0 is the loudest, 127 silence.
  mutating func heard(level: UInt8, now: Instant) {
    let current = value(at: now)
    let heard = (127 - Int(level & 127)) * 1000
    value = heard > current ? current + (heard - current) / 4 : current
    updated = now
  }

  func value(at now: Instant) -> Int {
    let milliseconds = Int(clamping: updated.duration(to: now).nanoseconds) / 1_000_000
    return max(0, value - min(milliseconds, 10_000) * Self.fallPerSecond / 1000)
  }
}

import Contract
import MediaModel

/// What a participant may send by `message`: 10 a second and 64 KiB a second (protocol section 6).
struct MessageBudget {
  static let maximumBytes = 16 << 10
  private var count = Allowance(rate: 10, burst: 10)
  private var bytes = Allowance(rate: 64 << 10, burst: 64 << 10)

  /// Takes one message of this size.
  /// - Throws: `rate.limited`; then nothing was taken.
  mutating func take(bytes size: Int, now: Timestamp) throws(RequestError) {
    let wait = max(count.wait(for: 1, now: now), bytes.wait(for: size, now: now))
    guard wait == 0 else {
      throw RequestError(
        .rateLimited, "a participant sends at most 10 messages and 64 KiB a second", retryAfterMs: wait)
    }
    count.take(1, now: now)
    bytes.take(size, now: now)
  }
}

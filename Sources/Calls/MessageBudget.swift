import Contract
import MediaModel

/// The rate limit of a participant's `message` requests: 10 a second and 64 KiB a second (protocol section 6).
struct MessageBudget {
  static let maximumBytes = 16 << 10
  private var count = TokenBucket(perSecond: 10, burst: 10)
  private var bytes = TokenBucket(perSecond: 64 << 10, burst: 64 << 10)

  /// Takes one message of this size.
  /// - Throws: `rate.limited`; then nothing was taken.
  mutating func take(bytes size: Int, now: Timestamp) throws(RequestError) {
    var (count, bytes) = (self.count, self.bytes)
    let wait = max(count.take(now: now.nanoseconds) ?? 0, bytes.take(size, now: now.nanoseconds) ?? 0)
    guard wait == 0 else {
      throw RequestError(
        .rateLimited, "a participant sends at most 10 messages and 64 KiB a second",
        retryAfterMs: wait.millisecondsRoundedUp)
    }
    (self.count, self.bytes) = (count, bytes)
  }
}

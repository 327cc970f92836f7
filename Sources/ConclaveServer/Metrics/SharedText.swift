import LinuxIO
import MediaModel
import Octets

/// A text that is expensive to make: all requests within a second get the same one. A few more are made if it was not requested for a while, so that two consecutive
/// readings differ.
actor SharedText {
  private let make: @Sendable () async -> String
  private let now: @Sendable () -> Instant
  private var last: Task<String, Never>?
  private var rate = TokenBucket(perSecond: 1, burst: 10)

  /// - Parameter now: a monotonic clock.
  init(now: @escaping @Sendable () -> Instant = { MonotonicClock.now() }, make: @escaping @Sendable () async -> String)
  {
    self.make = make
    self.now = now
  }

  func text() async -> String {
    if let last, rate.take(now: now().nanoseconds) != nil { return await last.value }
    let making = Task { [make] in await make() }
    last = making
    return await making.value
  }
}

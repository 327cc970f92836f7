package import Logging
import NIOCore
import Synchronization

/// Log lines that strangers can cause: a few of each kind at once, then one every ten seconds. The next line says how many were omitted, so that nobody
/// fills the disk and nothing goes unnoticed.
package final class LimitedLog: Sendable {
  package enum Kind: Hashable, Sendable {
    case tlsOnPlainPort, tlsHandshake, httpRequest, login, ending, encoding, history, keySet, mediaFlood, recordings
  }

  private struct Bucket {
    /// When it will be full again, in nanoseconds of the clock.
    var fullAt: UInt64 = 0
    var suppressed: UInt64 = 0
  }

  private static let burst: UInt64 = 5
  private static let interval: UInt64 = 10_000_000_000

  private let logger: Logger
  private let clock: @Sendable () -> UInt64
  private let buckets = Mutex<[Kind: Bucket]>([:])

  /// - Parameter clock: nanoseconds of a clock that does not jump.
  package init(
    _ logger: Logger, clock: @escaping @Sendable () -> UInt64 = { NIODeadline.now().uptimeNanoseconds }
  ) {
    self.logger = logger
    self.clock = clock
  }

  package func log(_ kind: Kind, _ level: Logger.Level, _ message: Logger.Message, _ metadata: Logger.Metadata = [:]) {
    guard level >= logger.logLevel, let suppressed = admit(kind) else { return }
    let counted: Logger.Metadata = suppressed > 0 ? ["suppressed": "\(suppressed)"] : [:]
    logger.log(level: level, message, metadata: metadata.merging(counted) { first, _ in first })
  }

  /// nil, and one more counts as omitted; or how many were omitted before this one.
  private func admit(_ kind: Kind) -> UInt64? {
    let now = clock()
    return buckets.withLock { buckets in
      var bucket = buckets[kind, default: Bucket()]
      defer { buckets[kind] = bucket }
      let full = max(bucket.fullAt, now) + Self.interval
      guard full - now <= Self.burst * Self.interval else {
        bucket.suppressed += 1
        return nil
      }
      bucket.fullAt = full
      return exchange(&bucket.suppressed, with: 0)
    }
  }
}

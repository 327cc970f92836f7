import MediaModel
import NIOCore

/// Decides which spans to send and when: in batches, one after the other, again after failures. It is bounded, and counts what it
/// drops.
struct SpanQueue: RetryQueue {
  enum Response: Sendable {
    case delivered
    /// The collector will not take the batch, however often it is sent.
    case refused
    /// The collector did not answer, or asked to retry after `retryAfter`; nil if it gave no time.
    case failed(retryAfter: Duration?)
  }

  enum Drop: String, Sendable, CaseIterable { case full, tooOld, refused }

  /// Spans that may wait, including those being sent. Above it new ones are dropped.
  static let maximumSpans = 8_192
  static let maximumBatch = 512
  /// The longest time that the first span of a batch waits for others.
  static let gathering = Duration.seconds(1)
  /// A batch that was first sent this long ago is abandoned.
  static let lifetime = Duration.seconds(300)
  static let backoff = ExponentialBackoff(first: .seconds(1), longest: .seconds(60))

  private struct Batch {
    var spans: [Span]
    var since: Instant
    var failures = 0
    /// nil while it is being sent.
    var nextTry: Instant?
  }

  private var waiting = CircularBuffer<Span>()
  /// When the waiting spans are sent, however few they are; nil if none waits.
  private var isDueAt: Instant?
  private var batch: Batch?
  private(set) var sent: UInt64 = 0
  /// POSTs that were not taken.
  private(set) var failed: UInt64 = 0
  private(set) var drops: [Drop: UInt64] = [:]

  var count: Int { waiting.count + (batch?.spans.count ?? 0) }

  /// When `next` has spans without anything else happening; nil while a batch is being sent, and if nothing waits.
  func deadline(now: Instant) -> Instant? { batch.map(\.nextTry) ?? isDueAt }

  mutating func add(_ spans: [Span], now: Instant) {
    guard !spans.isEmpty else { return }
    let room = max(0, Self.maximumSpans - count)
    if spans.count > room { drops[.full, default: 0] += UInt64(spans.count - room) }
    waiting += spans.prefix(room)
    if isDueAt == nil, !waiting.isEmpty { isDueAt = now.advanced(by: Self.gathering) }
  }

  mutating func next(now: Instant) -> [Span]? {
    if let tried = batch, let nextTry = tried.nextTry {
      guard nextTry <= now else { return nil }
      if tried.since.duration(to: now) < Self.lifetime {
        batch?.nextTry = nil
        return tried.spans
      }
      drops[.tooOld, default: 0] += UInt64(tried.spans.count)
      batch = nil
    }
    guard batch == nil, let isDueAt, isDueAt <= now || waiting.count >= Self.maximumBatch else { return nil }
    let spans = take()
    batch = Batch(spans: spans, since: now)
    return spans
  }

  mutating func finished(_ spans: [Span], _ response: Response, now: Instant, jitter: Double) {
    if case .delivered = response { sent &+= UInt64(spans.count) } else { failed &+= 1 }
    guard var tried = batch, tried.nextTry == nil else { return }
    switch response {
    case .delivered: batch = nil
    case .refused:
      drops[.refused, default: 0] += UInt64(tried.spans.count)
      batch = nil
    case .failed(let retryAfter):
      tried.failures += 1
      let pause = Self.backoff.pause(after: tried.failures, jitter: jitter)
      tried.nextTry = now.advanced(by: max(pause, min(retryAfter ?? .zero, Self.backoff.longest)))
      batch = tried
    }
  }

  /// All that are not being sent, for a server that ends: batch by batch, those that were tried before first.
  mutating func drain() -> [[Span]] {
    var batches: [[Span]] = []
    if let tried = batch, tried.nextTry != nil {
      batches.append(tried.spans)
      batch = nil
    }
    while !waiting.isEmpty { batches.append(take()) }
    return batches
  }

  private mutating func take() -> [Span] {
    let spans = Array(waiting.prefix(Self.maximumBatch))
    waiting.removeFirst(spans.count)
    if waiting.isEmpty { isDueAt = nil }
    return spans
  }
}

import MediaModel
import NIOCore
import Octets

/// Pending POSTs to the app's back end, and when to send them: in order within a line (a call), lines in parallel. Pure: times and randomness are
/// arguments, the next post is a value.
struct WebhookQueue: RetryQueue {
  struct Post: Sendable, Equatable {
    /// `Conclave-Id`: the same each time the post is sent.
    var id: String
    /// Posts of one line are sent one after the other.
    var line: String
    var event: String
    var body: [UInt8]
    var traceparent: String?
  }

  enum Response: Sendable {
    case delivered
    /// The back end will not take it, however often it is sent.
    case refused
    /// It did not answer, or asked to retry later.
    case failed
  }

  enum Drop: String, Sendable, CaseIterable { case full, tooOld, refused, unencodable }

  /// The most posts that may be pending; above it the oldest are dropped.
  static let maximumPosts = 10_000
  static let maximumBytes = 32 << 20
  /// Posts under way at once.
  static let parallel = 8
  static let lifetime = Duration.seconds(600)
  static let backoff = ExponentialBackoff(first: .seconds(1), longest: .seconds(60))

  private struct Waiting {
    var post: Post
    var since: Instant
    var serial: UInt64
  }

  private struct Line {
    var posts = CircularBuffer<Waiting>()
    /// The first of `posts` is being sent.
    var isBusy = false
    var failures = 0
  }

  private struct Place {
    var line: String
    var serial: UInt64
  }

  private var lines: [String: Line] = [:]
  /// Lines whose first post may go now; each line is here, in `pauses` or busy.
  private var ready = CircularBuffer<String>()
  /// Lines that wait after a failure, by the end of their pause.
  private var pauses = Heap<Instant, String>()
  /// All pending posts, oldest first; also some that are no longer pending.
  private var order = CircularBuffer<Place>()
  private var underWay = 0
  private var bytes = 0
  private var lastSerial: UInt64 = 0
  private(set) var count = 0
  private(set) var delivered: UInt64 = 0
  /// Posts that were refused, and attempts that failed.
  private(set) var failed: UInt64 = 0
  private(set) var drops: [Drop: UInt64] = [:]

  /// When a line's pause ends; nil if none pauses.
  func deadline(now: Instant) -> Instant? { pauses.first?.key }

  /// Counts an event that did not become a post.
  mutating func drop(_ reason: Drop) { drops[reason, default: 0] += 1 }

  mutating func add(_ post: Post, now: Instant) {
    lastSerial += 1
    let isNew = lines[post.line] == nil
    lines[post.line, default: Line()].posts.append(Waiting(post: post, since: now, serial: lastSerial))
    order.append(Place(line: post.line, serial: lastSerial))
    if order.count > 64 + 2 * count { order = order.filter(isWaiting) }
    count += 1
    bytes += post.body.count
    if isNew { ready.append(post.line) }
    while count > Self.maximumPosts || bytes > Self.maximumBytes { guard dropOldest() else { break } }
  }

  mutating func next(now: Instant) -> Post? {
    while let pause = pauses.first, pause.key <= now, let line = pauses.removeFirst() { ready.append(line) }
    guard underWay < Self.parallel else { return nil }
    while let name = ready.popFirst() {
      while let first = lines[name]?.posts.first, first.since.duration(to: now) >= Self.lifetime {
        removeFirst(of: name)
        drop(.tooOld)
      }
      guard let post = lines[name]?.posts.first?.post else {
        lines[name] = nil
        continue
      }
      lines[name]?.isBusy = true
      underWay += 1
      return post
    }
    return nil
  }

  mutating func finished(_ post: Post, _ response: Response, now: Instant, jitter: Double) {
    if response == .delivered { delivered &+= 1 } else { failed &+= 1 }
    guard var line = lines[post.line], line.isBusy else { return }
    underWay -= 1
    line.isBusy = false
    line.failures = response == .failed ? line.failures + 1 : 0
    lines[post.line] = line
    guard response == .failed else {
      if response == .refused { drop(.refused) }
      removeFirst(of: post.line)
      if lines[post.line]?.posts.isEmpty == true { lines[post.line] = nil } else { ready.append(post.line) }
      return
    }
    pauses.add(post.line, key: now.advanced(by: Self.backoff.pause(after: line.failures, jitter: jitter)))
  }

  private mutating func removeFirst(of name: String) {
    guard let first = lines[name]?.posts.popFirst() else { return }
    count -= 1
    bytes -= first.post.body.count
  }

  /// The oldest of all that is not being sent. A line that is empty then is removed when its turn comes.
  private mutating func dropOldest() -> Bool {
    var busy: [Place] = []
    defer { for place in busy.reversed() { order.prepend(place) } }
    while let place = order.popFirst() {
      // All older posts of its line left before it, except the one that is being sent.
      guard let line = lines[place.line],
        let index = line.posts.indices.prefix(2).first(where: { line.posts[$0].serial == place.serial })
      else { continue }
      guard index != line.posts.startIndex || !line.isBusy else {
        busy.append(place)
        continue
      }
      if let waiting = lines[place.line]?.posts.remove(at: index) {
        count -= 1
        bytes -= waiting.post.body.count
        drop(.full)
      }
      return true
    }
    return false
  }

  /// Posts leave a line in order, or are dropped with their place: from the line's first pending post on all are pending.
  private func isWaiting(_ place: Place) -> Bool {
    lines[place.line]?.posts.first.map { $0.serial <= place.serial } ?? false
  }
}

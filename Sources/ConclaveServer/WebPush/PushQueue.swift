import Contract
import MediaModel
import NIOCore

/// Waiting pushes, and which of them may be sent now. Pure: times are arguments, the next push is a value.
///
/// Pushes of one call, or one recording, to one endpoint are sent one after the other, and a later one replaces an earlier one that waits: the end of a ring replaces the
/// ring.
struct PushQueue: RetryQueue {
  struct Push: Sendable {
    var user: UserID
    var subscription: PushSubscription
    var notice: PushNotice
    /// It is of no use after this.
    var until: Timestamp
    var attempts = 0

    fileprivate var key: Key { Key(endpoint: subscription.endpoint, subject: notice.subject) }
  }

  enum Drop: String, Sendable, CaseIterable { case full, tooOld }

  fileprivate struct Key: Hashable {
    var endpoint: String
    var subject: String
  }

  static let maximumWaiting = 1_024
  /// The bound for one user: a slow push service of its own choice delays nobody else.
  static let maximumWaitingOfUser = 64
  static let parallel = 32
  static let parallelOfUser = 4
  static let attempts = 3
  static let backoff = ExponentialBackoff(first: .seconds(2), longest: .seconds(4))

  private var waiting: [(push: Push, from: Timestamp)] = []
  private var waitingOf: [UserID: Int] = [:]
  private var busy: [Key: UserID] = [:]
  private var busyOf: [UserID: Int] = [:]
  private(set) var sent: UInt64 = 0
  private(set) var failed: [PushPost.Failure: UInt64] = [:]
  private(set) var drops: [Drop: UInt64] = [:]
  var count: Int { waiting.count }

  static func pause(from now: Timestamp, to deadline: Timestamp) -> Duration { deadline - now }

  func deadline(now: Timestamp) -> Timestamp? { waiting.map(\.from).filter { $0 > now }.min() }

  mutating func add(_ push: Push, now: Timestamp) {
    if let place = waiting.firstIndex(where: { $0.push.key == push.key }) { remove(place) }
    guard waiting.count < Self.maximumWaiting, waitingOf[push.user, default: 0] < Self.maximumWaitingOfUser else {
      drops[.full, default: 0] += 1
      return
    }
    insert(push, from: now)
  }

  mutating func next(now: Timestamp) -> Push? {
    while let place = waiting.firstIndex(where: { $0.push.until <= now }) {
      remove(place)
      drops[.tooOld, default: 0] += 1
    }
    guard busy.count < Self.parallel else { return nil }
    let place = waiting.firstIndex { push, from in
      from <= now && busy[push.key] == nil && busyOf[push.user, default: 0] < Self.parallelOfUser
    }
    guard let place else { return nil }
    var push = remove(place)
    push.attempts += 1
    busy[push.key] = push.user
    busyOf[push.user, default: 0] += 1
    return push
  }

  /// No retry if a later push of the same subject waits.
  /// - Parameter failure: nil if the push service took it.
  mutating func finished(_ push: Push, _ failure: PushPost.Failure?, now: Timestamp, jitter: Double) {
    if let failure { failed[failure, default: 0] &+= 1 } else { sent &+= 1 }
    guard busy.removeValue(forKey: push.key) != nil else { return }
    let left = busyOf[push.user, default: 1] - 1
    busyOf[push.user] = left == 0 ? nil : left
    guard failure?.mayPass == true, push.attempts < Self.attempts, !waiting.contains(where: { $0.push.key == push.key })
    else { return }
    insert(push, from: now + Self.backoff.pause(after: push.attempts, jitter: jitter))
  }

  private mutating func insert(_ push: Push, from: Timestamp) {
    waiting.append((push, from))
    waitingOf[push.user, default: 0] += 1
  }

  @discardableResult private mutating func remove(_ place: Int) -> Push {
    let push = waiting.remove(at: place).push
    let left = waitingOf[push.user, default: 1] - 1
    waitingOf[push.user] = left == 0 ? nil : left
    return push
  }
}

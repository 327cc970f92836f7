package import Listening
package import MediaModel
import Octets
import Synchronization

/// The allowance shared by all connections of one user (protocol section 10), on any event loops. It outlives them until its buckets are full again.
package final class UserShare: Sendable {
  struct Limits: Sendable, Hashable {
    var connections: Int
    var subscriptions: Int
    var requestsPerSecond: Int
    var requestBurst: Int
    var inboundBytes: Int
    /// Bytes of events that follow from requests.
    var eventBytesPerSecond: Int
    var eventBurst: Int
  }

  /// Up to this rate refused requests are answered with `rate.limited` and reading continues; further ones pause the
  /// connection.
  static let refusalsPerSecond = 100
  /// Frames of any kind.
  static let framesPerSecond = 20_000
  /// Frames that a connection counts by itself before it asks the share.
  package static let frameBatch = 64
  /// The cost of a login, in units of requests.
  static let loginCost = 5
  /// How many events cost about as much as a simple request.
  static let eventsOfUnit = 16
  /// Bytes of an app's own messages that are written to subscribers of topics.
  static let messageBytesPerSecond = 64 << 20
  /// One request may cause more bytes than the burst; they are then paid for within this many seconds at most.
  static let longestDebt = 120

  private struct State: Sendable {
    var limits: Limits
    var connections = 0
    var subscriptions = 0
    var inboundBytes = 0
    var requests: TokenBucket
    var eventBytes: CreditBucket
    var refusals = TokenBucket(perSecond: refusalsPerSecond, burst: refusalsPerSecond)
    var frames = TokenBucket(perSecond: framesPerSecond, burst: framesPerSecond)
    var messageBytes = CreditBucket(perSecond: messageBytesPerSecond, burst: 2 * messageBytesPerSecond)

    init(_ limits: Limits) {
      self.limits = limits
      requests = TokenBucket(perSecond: limits.requestsPerSecond, burst: limits.requestBurst)
      eventBytes = CreditBucket(perSecond: limits.eventBytesPerSecond, burst: limits.eventBurst)
    }

    mutating func set(_ limits: Limits) {
      let fresh = State(limits)
      self.limits = limits
      (requests, eventBytes) = (fresh.requests, fresh.eventBytes)
    }
  }

  /// A bucket for costs that are charged afterwards, and refused only once more than the burst is used.
  private struct CreditBucket {
    private var bucket: TokenBucket
    private let credit: Int

    init(perSecond: Int, burst: Int) {
      // A bucket holds at most 2^30.
      credit = min(perSecond * longestDebt, max(0, 1 << 30 - burst))
      bucket = TokenBucket(perSecond: perSecond, burst: burst + credit)
    }

    mutating func charge(_ count: Int, now: UInt64) { _ = bucket.owe(count, now: now) }

    /// nil, or the nanoseconds until no more than the burst is used.
    func debt(now: UInt64) -> UInt64? {
      var bucket = bucket
      return bucket.take(credit, now: now)
    }

    func isFull(now: UInt64) -> Bool { bucket.isFull(now: now) }
  }

  private let state: Mutex<State>

  init(limits: Limits) { state = Mutex(State(limits)) }

  /// Counts stay; the buckets of requests and events start again.
  func setLimits(_ limits: Limits) { state.withLock { $0.set(limits) } }

  /// Counts a connection; returns the reason if it is refused.
  func connect(now: UInt64) -> SignalingStatistics.Drop? {
    state.withLock { state in
      guard state.connections < state.limits.connections else { return .userConnectionsFull }
      guard state.eventBytes.debt(now: now) == nil, state.requests.take(Self.loginCost, now: now) == nil else {
        return .userLoginsFull
      }
      state.connections += 1
      return nil
    }
  }

  package func disconnect(subscriptions: Int, inboundBytes: Int) {
    state.withLock { state in
      state.inboundBytes -= inboundBytes
      state.connections -= 1
      state.subscriptions -= subscriptions
    }
  }

  package func subscribe() -> Bool {
    state.withLock { state in
      guard state.subscriptions < state.limits.subscriptions else { return false }
      state.subscriptions += 1
      return true
    }
  }

  package func unsubscribe() { state.withLock { $0.subscriptions -= 1 } }

  /// A connection holds this many bytes more, or fewer, of frames that are incomplete or not committed; false if the user may not hold more.
  package func hold(_ bytes: Int) -> Bool {
    state.withLock { state in
      state.inboundBytes += bytes
      return bytes <= 0 || state.inboundBytes <= state.limits.inboundBytes
    }
  }

  /// Takes `cost` units. A cost above half of the burst needs only that half now, and owes the rest: otherwise the units that a request costing the whole burst
  /// has paid for its frame would be missing forever.
  /// - Returns: nil, or the nanoseconds to wait.
  package func take(_ cost: Int, now: UInt64) -> UInt64? {
    state.withLock { state in
      let part = min(cost, state.limits.requestBurst / 2)
      if let wait = state.requests.take(part, now: now) { return wait }
      if cost > part { _ = state.requests.owe(cost - part, now: now) }
      return nil
    }
  }

  /// Charges the events that followed from a request.
  func charge(_ events: EventCharge, now: UInt64) {
    state.withLock { state in
      if events.count >= Self.eventsOfUnit { _ = state.requests.owe(events.count / Self.eventsOfUnit, now: now) }
      state.eventBytes.charge(events.bytes, now: now)
    }
  }

  /// nil, or the nanoseconds until the events of earlier requests are paid for. Until then the user's requests are refused.
  package func debt(now: UInt64) -> UInt64? { state.withLock { $0.eventBytes.debt(now: now) } }

  /// An app's own messages went to subscribers of topics. Returns nil, or for how many nanoseconds the sending connection must not
  /// be read.
  package func fanOut(_ bytes: Int, now: UInt64) -> UInt64? {
    state.withLock { state in
      state.messageBytes.charge(bytes, now: now)
      return state.messageBytes.debt(now: now)
    }
  }

  /// Charges a cost that is known only after the work is done.
  package func owe(_ cost: Int, now: UInt64) { state.withLock { _ = $0.requests.owe(cost, now: now) } }

  /// nil, or for how many nanoseconds the connection must not be read.
  package func refuse(now: UInt64) -> UInt64? { state.withLock { $0.refusals.owe(now: now) } }

  /// The same for a batch of frames.
  package func readBatch(now: UInt64) -> UInt64? { state.withLock { $0.frames.owe(Self.frameBatch, now: now) } }

  fileprivate func isIdle(now: UInt64) -> Bool {
    state.withLock { state in
      state.connections == 0 && state.requests.isFull(now: now) && state.refusals.isFull(now: now)
        && state.frames.isFull(now: now) && state.eventBytes.isFull(now: now)
        && state.messageBytes.isFull(now: now)
    }
  }
}

/// The shares of all users that are connected, or were recently.
package final class UserShares: Sendable {
  private struct State: Sendable {
    var limits: UserShare.Limits
    var shares: [UserID: UserShare] = [:]

    mutating func share(of user: UserID) -> UserShare {
      let share = shares[user] ?? UserShare(limits: limits)
      shares[user] = share
      return share
    }
  }

  private let state: Mutex<State>

  init(limits: UserShare.Limits) { state = Mutex(State(limits: limits)) }

  /// They apply to all users immediately.
  func setLimits(_ limits: UserShare.Limits) {
    state.withLock { state in
      guard state.limits != limits else { return }
      state.limits = limits
      for share in state.shares.values { share.setLimits(limits) }
    }
  }

  /// The user's share, including one more connection.
  package func connect(_ user: UserID, now: UInt64) -> Result<UserShare, UserShareFull> {
    state.withLock { state in
      let share = state.share(of: user)
      return share.connect(now: now).map { .failure(UserShareFull(reason: $0)) } ?? .success(share)
    }
  }

  /// Also if the user no longer has a connection: the events caused by its end are charged, too.
  func charge(_ user: UserID, _ events: EventCharge, now: UInt64) {
    state.withLock { $0.share(of: user) }.charge(events, now: now)
  }

  /// Forgets users who have left and owe nothing. Call it periodically.
  func prune(now: UInt64) {
    state.withLock { state in state.shares = state.shares.filter { !$0.value.isIdle(now: now) } }
  }
}

/// The events that a request made the server write to clients.
package struct EventCharge: Hashable, Sendable {
  package var count: Int
  package var bytes: Int

  package init(count: Int, bytes: Int) {
    self.count = count
    self.bytes = bytes
  }
}

package struct UserShareFull: Error { package let reason: SignalingStatistics.Drop }

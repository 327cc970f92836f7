import Calls
import LinuxIO
import Logging
import MediaModel
import Persistence
import Synchronization

/// Writes what `Calls` wants stored, before anybody is told. A disk that fails ends no call and holds none up: they go on in memory, the operator is
/// told, and all is written anew beside them until the disk takes it.
struct Recorder {
  private enum State {
    case healthy
    /// Nothing is written before `nextTry`.
    case failing(nextTry: Instant)
    /// A full rewrite is on its way to the disk; `isOutdated`: too much came meanwhile to be written behind it.
    case rewriting(isOutdated: Bool)
  }

  /// Between two tries on a disk that fails.
  static let pause = Duration.seconds(3)
  private static let logPause = Duration.seconds(60)

  let health: StoreHealth
  private let store: Store
  private let logger: Logger
  /// Changes that may wait for the disk.
  private let maximumBacklog: Int
  private var state = State.healthy
  /// Changes that a full rewrite of the calls does not include.
  private var backlog: [StoreChange] = []
  /// Changes since the rewrite began.
  private var meanwhile: [StoreChange] = []
  private var nextLog: Instant?

  init(_ store: Store, logger: Logger, health: StoreHealth, maximumBacklog: Int = 100_000) {
    self.store = store
    self.logger = logger
    self.health = health
    self.maximumBacklog = maximumBacklog
  }

  mutating func write(_ changes: [StoreChange], now: Instant) {
    switch state {
    case .healthy:
      do {
        try store.write(changes)
        health.succeeded()
      } catch {
        keep(changes)
        fail(error, now: now)
      }
    case .failing: keep(changes)
    case .rewriting: putBehind(changes)
    }
  }

  /// The changes to write now, in one transaction and off the loop; the caller reports the outcome by `finish`. nil while there are none.
  /// - Parameter everything: all that there is of the calls.
  mutating func begin(now: Instant, everything: () -> [StoreChange]) -> [StoreChange]? {
    guard case .failing(let nextTry) = state, nextTry <= now else { return nil }
    state = .rewriting(isOutdated: false)
    return backlog + everything()
  }

  /// - Parameter error: nil when it was written.
  mutating func finish(_ error: StoreError?, now: Instant) {
    guard case .rewriting(let isOutdated) = state else { return }
    let changes = meanwhile
    meanwhile = []
    if let error {
      keep(changes)
      return fail(error, now: now)
    }
    backlog = []
    guard !isOutdated else {
      keep(changes)
      state = .failing(nextTry: now)
      return
    }
    state = .healthy
    health.succeeded()
    logger.notice("the database can be written again", metadata: ["file": "\(store.path)"])
    if !changes.isEmpty { write(changes, now: now) }
  }

  private mutating func putBehind(_ changes: [StoreChange]) {
    if case .rewriting(isOutdated: true) = state {
      meanwhile += lasting(changes, besides: meanwhile.count)
    } else if meanwhile.count + changes.count <= maximumBacklog {
      meanwhile += changes
    } else {
      state = .rewriting(isOutdated: true)
      meanwhile = lasting(meanwhile + changes, besides: 0)
    }
  }

  private mutating func keep(_ changes: [StoreChange]) { backlog += lasting(changes, besides: backlog.count) }

  /// The changes that a full rewrite does not include, as many as there is room for.
  private func lasting(_ changes: [StoreChange], besides count: Int) -> [StoreChange] {
    let facts = changes.filter(\.isLasting)
    let room = max(0, maximumBacklog - count)
    if facts.count > room { health.lost(facts.count - room) }
    return Array(facts.prefix(room))
  }

  private mutating func fail(_ error: StoreError, now: Instant) {
    state = .failing(nextTry: now.advanced(by: Self.pause))
    health.failed(error.description)
    guard nextLog.map({ $0 <= now }) ?? true else { return }
    nextLog = now.advanced(by: Self.logPause)
    logger.error("the database cannot be written; calls go on in memory", metadata: ["reason": "\(error)"])
  }
}

extension StoreChange {
  /// Not among `Calls.everything`.
  fileprivate var isLasting: Bool {
    switch self {
    case .history, .number, .ended, .forgotten: true
    case .reset, .call, .progress, .epoch, .link, .confirmation, .member, .memberGone, .ringEnvelope, .ringEnvelopeOver,
      .device, .deviceGone, .revokes, .mailbox, .presence:
      false
    }
  }
}

/// How the database does, for `/readyz` and `/metrics`.
final class StoreHealth: Sendable {
  struct Statistics {
    var transactions: UInt64 = 0
    var failures: UInt64 = 0
    /// Facts of history that the disk never got.
    var lost: UInt64 = 0
    /// Why it cannot be written now.
    var failure: String?
  }

  private let state = Mutex(Statistics())

  var statistics: Statistics { state.withLock { $0 } }

  func succeeded() {
    state.withLock {
      $0.transactions &+= 1
      $0.failure = nil
    }
  }

  func failed(_ reason: String) {
    state.withLock {
      $0.failures &+= 1
      $0.failure = reason
    }
  }

  func lost(_ count: Int) { state.withLock { $0.lost &+= UInt64(count) } }
}

extension Metrics.Page {
  mutating func add(_ store: StoreHealth.Statistics) {
    counter("conclave_store_transactions_total", "Transactions written to the database.", store.transactions)
    counter("conclave_store_failures_total", "Transactions that the database did not take.", store.failures)
    counter("conclave_store_lost_facts_total", "Facts of history that were never written.", store.lost)
    gauge("conclave_store_failing", "1 while the database cannot be written.", store.failure == nil ? 0 : 1)
  }
}

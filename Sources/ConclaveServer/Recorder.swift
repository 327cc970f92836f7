import Calls
import LinuxIO
import Logging
import MediaModel
import Persistence
import Synchronization

/// Writes what `Calls` wants stored. A disk that fails ends no call: they go on in memory, the operator is told, and all is written anew until the disk takes it.
struct Recorder {
  /// Between two tries on a disk that fails: each may wait for a second.
  static let pause = Duration.seconds(3)
  private static let logPause = Duration.seconds(60)
  private static let maximumBacklog = 100_000

  let health: StoreHealth
  private let store: Store
  private let logger: Logger
  /// What a full rewrite of the calls does not tell.
  private var backlog: [StoreChange] = []
  private var nextTry: Instant?
  private var nextLog: Instant?

  init(_ store: Store, logger: Logger, health: StoreHealth) {
    self.store = store
    self.logger = logger
    self.health = health
  }

  mutating func write(_ changes: [StoreChange], now: Instant) {
    guard nextTry == nil else { return keep(changes) }
    do {
      try store.write(changes)
      health.succeeded()
    } catch {
      keep(changes)
      fail(error, now: now)
    }
  }

  /// Tries again when it is time, with all that there is.
  mutating func retry(now: Instant, everything: () -> [StoreChange]) {
    guard let nextTry, nextTry <= now else { return }
    do {
      try store.write(backlog + everything())
      self.nextTry = nil
      backlog = []
      health.succeeded()
      logger.notice("the database can be written again", metadata: ["file": "\(store.path)"])
    } catch {
      fail(error, now: now)
    }
  }

  private mutating func keep(_ changes: [StoreChange]) {
    let facts = changes.filter(\.isLasting)
    let room = max(0, Self.maximumBacklog - backlog.count)
    backlog += facts.prefix(room)
    if facts.count > room { health.lost(facts.count - room) }
  }

  private mutating func fail(_ error: StoreError, now: Instant) {
    nextTry = now.advanced(by: Self.pause)
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
    case .reset, .call, .progress, .epoch, .member, .memberGone, .ringEnvelope, .ringEnvelopeOver, .device, .deviceGone,
      .mailbox:
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

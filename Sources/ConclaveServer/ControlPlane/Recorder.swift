import CallMessages
import Logging
import MediaModel
import Synchronization

/// Decides what to write to the disk and when, and what no longer has to wait for it: a group commit.
///
/// ## Overview
/// `record` takes the changes of each command and numbers them. Everything that arrived while a transaction was under way forms the next one (`next`,
/// `finish`). `settled` is the number up to which clients may be told.
///
/// A failing disk ends no call and delays none: calls go on in memory, everything is settled immediately, the operator is informed, and everything is
/// written again until the disk accepts it (`rewrite`). A transaction that takes longer than `patience` counts as a failure, too.
///
/// ## Invariants
/// - At most one transaction is under way, and changes reach the disk in the order in which they came.
/// - `settled` never goes back, and with a working disk it is never ahead of the disk.
struct Recorder {
  private enum State {
    case healthy
    /// Nothing is written before `nextTry`.
    case failing(nextTry: Instant)
    /// A full rewrite is being written; `isOutdated`: too much arrived meanwhile to be written after it.
    case rewriting(isOutdated: Bool)
  }

  private struct Transaction {
    var changes: [StoreChange]
    /// The number of the last command in it.
    var last: UInt64
    var since: Instant
  }

  /// Between two attempts on a failing disk.
  static let pause = Duration.seconds(3)
  /// The longest time that clients wait for a transaction.
  static let patience = Duration.seconds(5)
  private static let logPause = Duration.seconds(60)

  let health: StoreHealth
  private let place: String
  private let logger: Logger
  /// Changes that may wait for the disk.
  private let maximumBacklog: Int
  private var state = State.healthy
  private var transaction: Transaction?
  /// Changes that wait for the next transaction; during a rewrite, those since the rewrite began.
  private var waiting: [StoreChange] = []
  /// Changes that a full rewrite of the calls does not include.
  private var backlog: [StoreChange] = []
  private var nextLog: Instant?
  /// The number of the last command with changes.
  private(set) var recorded: UInt64 = 0
  /// The changes of all commands up to this one are on the disk, or the disk fails.
  private(set) var settled: UInt64 = 0

  /// - Parameters:
  ///   - place: of the store, for the log.
  ///   - maximumBacklog: of changes.
  init(place: String, logger: Logger, health: StoreHealth, maximumBacklog: Int = 100_000) {
    self.place = place
    self.logger = logger
    self.health = health
    self.maximumBacklog = maximumBacklog
  }

  /// The most changes wait for a transaction: clients' commands have to wait, too. A failing disk delays nobody.
  var isFull: Bool { if case .healthy = state { waiting.count >= maximumBacklog } else { false } }

  /// Something was handed out to be written and has not been reported by `finish`.
  var isWriting: Bool { if case .rewriting = state { true } else { transaction != nil } }

  /// Takes the changes of one command.
  mutating func record(_ changes: [StoreChange]) {
    recorded += 1
    switch state {
    case .healthy: waiting += changes
    case .failing:
      keep(changes)
      settled = recorded
    case .rewriting:
      putBehind(changes)
      settled = recorded
    }
  }

  /// The changes of the next transaction; nil while one is under way, or if nothing waits. The caller writes them off the loop and calls `finish`.
  mutating func next(now: Instant) -> [StoreChange]? {
    guard case .healthy = state, transaction == nil, !waiting.isEmpty else { return nil }
    let changes = exchange(&waiting, with: [])
    transaction = Transaction(changes: changes, last: recorded, since: now)
    return changes
  }

  /// The changes that repair a disk that failed, as `next`; nil while it is too early, or if there is nothing to
  /// repair.
  /// - Parameter everything: the whole state of the calls.
  mutating func rewrite(now: Instant, everything: () -> [StoreChange]) -> [StoreChange]? {
    guard case .failing(let nextTry) = state, nextTry <= now, transaction == nil else { return nil }
    state = .rewriting(isOutdated: false)
    return backlog + everything()
  }

  /// The changes that were handed out last have been written, or could not be.
  /// - Parameter error: nil if all of them were written; otherwise none were.
  mutating func finish(_ error: StoreError?, now: Instant) {
    if let done = transaction {
      transaction = nil
      finish(done, error, now: now)
    } else if case .rewriting(let isOutdated) = state {
      finishRewrite(error, isOutdated: isOutdated, now: now)
    }
  }

  /// Called each second: a transaction that takes too long counts as a failure, and clients no longer wait.
  mutating func checkPatience(now: Instant) {
    guard case .healthy = state, let transaction, transaction.since.advanced(by: Self.patience) <= now else { return }
    // It may still succeed later. These facts are then written twice, which does no harm.
    keep(transaction.changes + exchange(&waiting, with: []))
    fail(
      "\(place): it has not answered for \(Self.patience); look at the disk's load and the kernel's log (dmesg), and at the "
        + "network to a database", now)
  }

  private mutating func finish(_ done: Transaction, _ error: StoreError?, now: Instant) {
    // Otherwise it took too long, and its changes are already kept for the rewrite.
    guard case .healthy = state else { return }
    if let error {
      keep(done.changes + exchange(&waiting, with: []))
      return fail(error.description, now)
    }
    settled = done.last
    health.committed(after: done.since.duration(to: now))
    succeed()
  }

  private mutating func finishRewrite(_ error: StoreError?, isOutdated: Bool, now: Instant) {
    if let error {
      keep(exchange(&waiting, with: []))
      return fail(error.description, now)
    }
    backlog = []
    guard !isOutdated else {
      keep(exchange(&waiting, with: []))
      state = .failing(nextTry: now)
      return
    }
    state = .healthy
    // Clients were told about the changes that arrived meanwhile, so the disk counts as failing until it has them.
    if waiting.isEmpty { succeed() }
  }

  private func succeed() {
    guard health.succeeded() else { return }
    logger.notice("the database can be written again", metadata: ["place": "\(place)"])
  }

  private mutating func putBehind(_ changes: [StoreChange]) {
    if case .rewriting(isOutdated: true) = state {
      waiting += lasting(changes, besides: waiting.count)
    } else if waiting.count + changes.count <= maximumBacklog {
      waiting += changes
    } else {
      state = .rewriting(isOutdated: true)
      waiting = lasting(waiting + changes, besides: 0)
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

  private mutating func fail(_ reason: String, _ now: Instant) {
    state = .failing(nextTry: now.advanced(by: Self.pause))
    settled = recorded
    health.failed(reason)
    guard nextLog.map({ $0 <= now }) ?? true else { return }
    nextLog = now.advanced(by: Self.logPause)
    logger.error("the database cannot be written; calls go on in memory", metadata: ["reason": "\(reason)"])
  }
}

extension StoreChange {
  /// Not included in `Node.everything`.
  fileprivate var isLasting: Bool {
    switch self {
    case .history, .report, .recording, .number, .ended, .forgotten: true
    case .reset, .call, .progress, .epoch, .entry, .entryGone, .link, .confirmation, .word, .wordGone, .signer,
      .signerGone, .member, .memberGone, .ringEnvelope, .ringEnvelopeOver,
      .device, .deviceGone, .revokes, .mailbox, .presence, .lastingLink, .lastingLinkGone, .running:
      false
    }
  }
}

/// The state of the database, for `/readyz` and `/metrics`.
final class StoreHealth: Sendable {
  struct Statistics {
    var transactions: UInt64 = 0
    var failures: UInt64 = 0
    /// Facts of history that never reached the disk.
    var lost: UInt64 = 0
    /// Why it cannot be written now.
    var failure: String?
    /// How long the control plane waited for each transaction, in seconds.
    var waits = Measurements.Histogram([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5])
    /// The last known condition of the store's server; nil without one.
    var condition: StoreCondition?
  }

  private let state = Mutex(Statistics())

  var statistics: Statistics { state.withLock { $0 } }

  /// A transaction was written, and nothing that clients were told waits for the disk.
  /// - Returns: whether the disk failed before.
  @discardableResult func succeeded() -> Bool {
    state.withLock { statistics in
      statistics.transactions &+= 1
      defer { statistics.failure = nil }
      return statistics.failure != nil
    }
  }

  func committed(after time: Duration) {
    state.withLock { $0.waits.add(Double(time.nanoseconds) / 1_000_000_000) }
  }

  /// - Returns: whether the operator has to be told something new.
  func learned(_ condition: StoreCondition) -> Bool {
    state.withLock { statistics in
      defer { statistics.condition = condition }
      return statistics.condition.map { !$0.isLike(condition) } ?? !condition.warnings.isEmpty
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
    histogram("conclave_store_commit_seconds", "Waits of the control plane for a transaction.", store.waits)
    guard let condition = store.condition else { return }
    gauge(
      "conclave_store_synchronous", "1 if a commit waits for a standby of the database.",
      condition.isSynchronous ? 1 : 0)
    gauge("conclave_store_standbys", "Standbys that are connected to the database.", condition.standbys)
    line(
      "conclave_store_clock_offset_seconds", "gauge", "The database's clock minus this machine's.",
      " \(Double(condition.clockOffset.nanoseconds) / 1_000_000_000)")
    line(
      "conclave_store_round_trip_seconds", "gauge", "The quickest of five answers of the database.",
      " \(Double(condition.roundTrip.nanoseconds) / 1_000_000_000)")
  }
}

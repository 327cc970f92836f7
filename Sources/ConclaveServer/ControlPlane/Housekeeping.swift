import CallMessages
import Dispatch
import Logging
import MediaModel
import Listening
import Synchronization

/// The store's periodic work, on a separate thread: checkpoints, users named by `conclave forget`, expired rows, and the condition of a database's server.
final class Housekeeping: Sendable {
  /// Between two sweeps.
  static let sweepPause = Duration.seconds(3_600)
  /// Between two questions about the condition.
  static let conditionPause = Duration.seconds(15)

  private struct State {
    var isUnderWay = false
    var nextSweep: Instant?
    var nextCondition: Instant?
  }

  private let store: any Storage
  private let health: StoreHealth
  private let clock: WallClock
  private let historyDays: Int
  private let log: LimitedLog
  private let queue = DispatchQueue(label: "conclave.housekeeping")
  private let state = Mutex(State())

  /// - Parameter historyDays: how long calls stay in the history.
  init(store: any Storage, health: StoreHealth, clock: WallClock, historyDays: Int, log: LimitedLog) {
    self.store = store
    self.health = health
    self.clock = clock
    self.historyDays = historyDays
    self.log = log
  }

  /// Does what is due, asynchronously on its thread; nothing while that is working. Call it each second.
  /// - Parameter forget: called on that thread for each user that another process deleted; `.forget` does the rest.
  func begin(now: Instant, forget: @escaping @Sendable (UserID) -> Void) {
    let begins = state.withLock { state in
      defer { state.isUnderWay = true }
      return !state.isUnderWay
    }
    guard begins else { return }
    queue.async {
      self.step(now: now, forget: forget)
      self.state.withLock { $0.isUnderWay = false }
    }
  }

  /// The same, synchronously.
  func step(now: Instant, forget: (UserID) -> Void) {
    store.checkpoint { [log] error in
      log.log(.history, .error, "the database's log was not copied", ["reason": "\(error)"])
    }
    // Also where nothing can be written: a standby that is gone may be the reason.
    askCondition(now: now)
    // A failing disk gets the whole state first, and its time is reserved for that.
    guard health.statistics.failure == nil else { return }
    do {
      for user in try store.takeForgotten() { forget(user) }
      try sweep(now: now)
    } catch {
      // It is repeated a second later.
      log.log(.history, .error, "the database's periodic work failed", ["reason": "\(error)"])
    }
  }

  /// A database that does not answer is reported by its writers.
  private func askCondition(now: Instant) {
    let isDue = state.withLock { state in
      guard state.nextCondition.map({ $0 <= now }) ?? true else { return false }
      state.nextCondition = now.advanced(by: Self.conditionPause)
      return true
    }
    guard isDue, let condition = try? store.condition(now: { [clock] in clock.machineTime() }),
      health.learned(condition)
    else { return }
    let warnings = condition.warnings
    if warnings.isEmpty {
      log.log(.history, .notice, "nothing is wrong with the database's server any more")
    } else {
      log.log(
        .history, .warning, "the database's server is not as it should be",
        ["reason": "\(warnings.joined(separator: " "))"])
    }
  }

  /// A short step each second, until nothing is left that has expired.
  private func sweep(now: Instant) throws(StoreError) {
    guard state.withLock({ $0.nextSweep.map { $0 <= now } ?? true }) else { return }
    let hasMore = try store.sweep(now: clock.now(), historyDays: historyDays)
    if !hasMore { state.withLock { $0.nextSweep = now.advanced(by: Self.sweepPause) } }
  }
}

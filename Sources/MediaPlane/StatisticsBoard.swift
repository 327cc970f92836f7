import MediaModel
import Synchronization

/// Where a worker puts its statistics for others to read, without ever waiting for them.
final class StatisticsBoard: Sendable {
  private let latest: Mutex<WorkerStatistics>

  init(port: UInt16) { latest = Mutex(WorkerStatistics(port: port)) }

  var statistics: WorkerStatistics { latest.withLock { $0 } }

  /// Returns whether it could: not while somebody reads.
  func publish(_ statistics: WorkerStatistics) -> Bool {
    latest.withLockIfAvailable { $0 = statistics } != nil
  }
}

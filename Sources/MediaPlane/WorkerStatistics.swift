package import Forwarding
package import LinuxIO
import MediaModel
import Synchronization

/// Counts of one worker since its start; at most 100 ms old.
package struct WorkerStatistics: Sendable {
  package var port: UInt16
  package var forwarding = SFUCounters()
  package var socket = UDPCounters()
  package var tcp = TCPCounters()
  /// Datagrams that the kernel dropped because the worker was too slow; wraps at 2^32.
  package var receiveDrops: UInt32 = 0
  /// The share of the video that receivers wish, 0...1; below 1 while the worker cannot keep up.
  package var videoShare = 1.0
  /// How often the worker woke, sent its outbox, and sent it because the hold was over.
  package var turns: UInt64 = 0
  package var flushes: UInt64 = 0
  package var heldFlushes: UInt64 = 0
  package var passes = PassDurations()
}

/// Where a worker puts its statistics for others to read, without ever waiting for them.
final class StatisticsBoard: Sendable {
  private let latest: Mutex<WorkerStatistics>

  init(port: UInt16) { latest = Mutex(WorkerStatistics(port: port)) }

  var statistics: WorkerStatistics { latest.withLock { $0 } }

  /// Returns whether it succeeded: not while somebody reads.
  func publish(_ statistics: WorkerStatistics) -> Bool {
    latest.withLockIfAvailable { $0 = statistics } != nil
  }
}

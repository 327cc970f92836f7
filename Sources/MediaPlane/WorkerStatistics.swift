package import Forwarding
package import LinuxIO

/// Counts of one worker since its start; at most 100 ms old.
package struct WorkerStatistics: Sendable {
  package var port: UInt16
  package var forwarding = Counters()
  package var socket = UDPCounters()
  package var tcp = TCPCounters()
  /// Datagrams that the kernel dropped because the worker was too slow; wraps at 2^32.
  package var receiveDrops: UInt32 = 0
  /// How often the worker woke, sent its outbox, and sent it because the hold was over.
  package var turns: UInt64 = 0
  package var flushes: UInt64 = 0
  package var heldFlushes: UInt64 = 0
  package var passes = PassDurations()
}

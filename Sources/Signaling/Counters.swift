import Synchronization

/// The statistics of all event loops.
final class Counters: Sendable {
  private let statistics = Mutex(SignalingStatistics())

  var snapshot: SignalingStatistics { statistics.withLock { $0 } }

  func update(_ change: (inout sending SignalingStatistics) -> Void) { statistics.withLock { change(&$0) } }

  func drop(_ reason: SignalingStatistics.Drop) { update { $0.drops[reason, default: 0] += 1 } }

  func drop(_ drops: [SignalingStatistics.Drop: UInt64]) {
    if !drops.isEmpty { update { $0.drops.merge(drops) { $0 + $1 } } }
  }

  /// Counts a connection in; false when there are `maximum` already.
  func admit(maximum: Int) -> Bool {
    statistics.withLock { statistics in
      guard statistics.connections < maximum else {
        statistics.drops[.connectionRefused, default: 0] += 1
        return false
      }
      statistics.connections += 1
      statistics.accepted += 1
      return true
    }
  }
}

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
}

/// The facts that an operator should know about a store with a server of its own.
package struct StoreCondition: Equatable, Sendable {
  /// The place that a commit waits for.
  package enum Confirmation: Equatable, Sendable {
    /// Standbys, named as in the server's configuration.
    case standbys(String)
    /// The server's own disk.
    case disk
    /// Less than is configured for others: `synchronous_commit` has this value.
    case off(String)
  }

  package var confirmation: Confirmation
  /// How many standbys are connected.
  package var standbys: Int
  /// The store's clock minus this machine's.
  package var clockOffset: Duration
  /// The quickest of some answers.
  package var roundTrip: Duration

  package init(confirmation: Confirmation, standbys: Int, clockOffset: Duration, roundTrip: Duration) {
    self.confirmation = confirmation
    self.standbys = standbys
    self.clockOffset = clockOffset
    self.roundTrip = roundTrip
  }

  /// Everything that clients were told survives the loss of the store's machine.
  package var isSynchronous: Bool { if case .standbys = confirmation { true } else { false } }

  /// Commits wait for a standby, and none is there.
  package var isStuck: Bool { isSynchronous && standbys == 0 }

  /// The clocks differ by more than a second.
  package var isClockOff: Bool { clockOffset > .seconds(1) || clockOffset < .seconds(-1) }

  /// Whether an operator has to be told the same about both.
  package func isLike(_ other: StoreCondition) -> Bool {
    (confirmation, isStuck, isClockOff) == (other.confirmation, other.isStuck, other.isClockOff)
  }
}

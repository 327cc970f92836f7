/// How long each thing in a cluster takes, at most. Only the lease is the operator's; the others follow from it, or are the same everywhere.
///
/// No time here makes two owners possible: `fence` in the store decides who may write. A lease says when somebody is declared dead, and how old an answer may be.
package struct Times: Sendable {
  /// A node whose row has not changed for this long may be declared dead.
  package var lease: Duration = .seconds(5)
  /// A node without anything to write renews after this. A fifth of the lease.
  package var renewal: Duration = .seconds(1)
  /// A node that has not renewed for this long answers nothing from memory: somebody else may own what it holds. Four fifths of the lease, because two clocks may
  /// differ by a quarter.
  package var suspension: Duration = .seconds(4)
  package var poll: Duration = .seconds(1)
  /// A poll that takes longer says nothing about other nodes: the store was slow, not they.
  package var goodPoll: Duration = .seconds(2)
  /// The edge answers a request with `busy` when nobody else has.
  package var request: Duration = .seconds(5)
  /// A message whose addressee has no known owner waits for this long.
  package var waiting: Duration = .seconds(10)
  /// `attach` is repeated after this without an answer.
  package var meeting: Duration = .seconds(2)
  /// A question to the store that failed is asked again after this.
  package var retry: Duration = .milliseconds(500)
  /// A user without a connection and a call stays in memory for this long, in case the network comes back.
  package var idle: Duration = .seconds(60)
  /// The first probe after the last parcel, and those after it.
  package var probe: Duration = .milliseconds(250)
  package var laterProbe: Duration = .seconds(5)
  /// A missing parcel is asked for this often, and then the stream begins again.
  package var again: Duration = .milliseconds(500)
  package var agains = 4
  /// Parcels are kept for repeats.
  package var kept: Duration = .seconds(5)
  /// Committed batches are kept for a store that goes back in time.
  package var keptBatches: Duration = .seconds(10)

  package init() {}
}

/// How much may be kept for others. Beyond that the work is refused, or the stream begins again.
enum Bounds {
  /// Messages that wait for one addressee.
  static let waiting = 1_024
  /// Effects that wait for a commit.
  static let held = 100_000
  /// Where others live.
  static let places = 200_000
  /// Changes in one batch, so that a storm of logins does not hold up a call for long.
  static let batch = 2_000
  /// Calls of a dead node that are taken with one batch.
  static let adoption = 32
}

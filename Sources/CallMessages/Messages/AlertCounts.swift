/// Alerts since the start, for the metrics: one for each user who was alerted.
package struct AlertCounts: Hashable, Sendable {
  package var raised: UInt64 = 0
  package var reached: UInt64 = 0
  /// No device of the user came in time.
  package var givenUp: UInt64 = 0
  package var waiting = 0

  package init(raised: UInt64 = 0, reached: UInt64 = 0, givenUp: UInt64 = 0, waiting: Int = 0) {
    self.raised = raised
    self.reached = reached
    self.givenUp = givenUp
    self.waiting = waiting
  }
}

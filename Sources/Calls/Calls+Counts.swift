extension Calls {
  /// No call runs.
  package var isIdle: Bool { calls.isEmpty }

  /// Calls that run, and the devices that are joined in them.
  package var counts: (calls: Int, participants: Int) {
    (calls.count, calls.values.reduce(0) { $0 + $1.joinedCount })
  }
}

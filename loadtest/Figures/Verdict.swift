/// Whether a test passed, and if not, why.
struct Verdict: Sendable {
  let faults: [String]
  var isOK: Bool { faults.isEmpty }

  /// Faults of the run always count. Losses count only if no condition limits them.
  init(faults: [String], losses: [String], conditions: [Condition], figure: (Metric) -> Double?) {
    self.faults =
      faults + (conditions.isEmpty ? losses : conditions.compactMap { $0.failure(figure($0.metric)) })
  }

  /// The last lines of a report.
  var text: String { isOK ? "ok" : (faults.map { "fault             \($0)" } + ["NOT ok"]).joined(separator: "\n") }
}

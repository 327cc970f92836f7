/// Whether a test passed, and what stands against it.
struct Verdict: Sendable {
  let faults: [String]
  var isOK: Bool { faults.isEmpty }

  /// Faults of the run always count. Losses do where no condition says how much may be lost.
  init(faults: [String], losses: [String], conditions: [Condition], figure: (Metric) -> Double?) {
    self.faults =
      faults + (conditions.isEmpty ? losses : conditions.compactMap { $0.failure(figure($0.metric)) })
  }

  /// The last lines of a report.
  var text: String { isOK ? "ok" : (faults.map { "fault             \($0)" } + ["NOT ok"]).joined(separator: "\n") }
}

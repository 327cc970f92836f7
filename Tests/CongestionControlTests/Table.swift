import CongestionControl

/// The runs of one controller in one scenario.
struct Figures {
  /// Name, median and worst of each measure.
  var rows: [(name: String, median: Double, worst: Double, isLowerBetter: Bool, tolerance: Double)]

  init(_ scenario: Scenario, seeds: [UInt64], _ controller: () -> any RateController) {
    let runs = seeds.map { scenario.run($0, controller) }
    rows = runs[0].indices.map { i in
      let values = runs.map { $0[i].value }.sorted()
      let first = runs[0][i]
      return (
        first.name, values[values.count / 2], first.isLowerBetter ? values.last! : values.first!, first.isLowerBetter,
        first.tolerance
      )
    }
  }
}

extension Double {
  /// Two or three significant digits.
  var short: String {
    let digits = abs(self) < 10 ? 100.0 : abs(self) < 100 ? 10.0 : 1.0
    let rounded = (self * digits).rounded() / digits
    return digits == 1 ? "\(Int(rounded))" : "\(rounded)"
  }
}

/// A table row for each measure: median (worst) of both controllers.
func tableRows(_ scenario: Scenario, ours: Figures, port: Figures) -> [String] {
  zip(ours.rows, port.rows).enumerated().map { i, pair in
    let (a, b) = pair
    let difference = (a.median - b.median) * (a.isLowerBetter ? 1 : -1)
    let verdict = difference > a.tolerance ? "worse" : difference < -a.tolerance ? "better" : "equal"
    return
      "| \(i == 0 ? scenario.name : "") | \(a.name) | \(a.median.short) (\(a.worst.short)) | \(b.median.short) (\(b.worst.short)) | \(verdict) |"
  }
}

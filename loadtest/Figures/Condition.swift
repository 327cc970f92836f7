import Foundation

/// A limit that a figure must not pass, as `loss>0.1%`.
struct Condition: Sendable, Hashable {
  enum Comparison: String, CaseIterable {
    // The longer ones first, since `>` is a prefix of `>=`.
    case atLeast = ">="
    case atMost = "<="
    case above = ">"
    case below = "<"
  }

  struct Failure: Error, CustomStringConvertible { var description: String }

  let metric: Metric
  let comparison: Comparison
  /// In the base unit of the metric.
  let limit: Double
  /// The condition as it was written.
  let text: String

  init(_ text: some StringProtocol) throws(Failure) {
    let text = String(text.filter { $0 != " " })
    guard let found = Self.split(text) else {
      throw Failure(description: "\(text): a condition is a metric, one of > >= < <=, and a limit, as loss>0.1%")
    }
    guard let metric = Metric(rawValue: found.name) else {
      let names = Metric.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure(description: "\(text): there is no metric \(found.name); use one of \(names)")
    }
    guard let limit = metric.limit(found.limit) else {
      throw Failure(
        description: "\(text): \(found.limit) is no limit of \(metric.rawValue); write it as \(metric.example)")
    }
    self.text = text
    self.metric = metric
    comparison = found.comparison
    self.limit = limit
  }

  /// Reads conditions that commas separate; at least one.
  static func list(_ text: String) throws(Failure) -> [Condition] {
    var conditions: [Condition] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) { conditions.append(try Condition(part)) }
    return conditions
  }

  private static func split(_ text: String) -> (name: String, comparison: Comparison, limit: String)? {
    guard let place = text.firstIndex(where: { "<>".contains($0) }),
      let comparison = Comparison.allCases.first(where: { text[place...].hasPrefix($0.rawValue) })
    else { return nil }
    return (String(text[..<place]), comparison, String(text[place...].dropFirst(comparison.rawValue.count)))
  }

  func holds(for value: Double) -> Bool {
    switch comparison {
    case .atLeast: value >= limit
    case .atMost: value <= limit
    case .above: value > limit
    case .below: value < limit
    }
  }

  /// Why `figure` fails the test: it meets the condition, or is missing, which proves nothing. nil when it passes.
  func failure(_ figure: Double?) -> String? {
    guard let figure else { return "\(text): there is no such figure in this run" }
    return holds(for: figure) ? "\(text): it is \(metric.text(figure))" : nil
  }
}

extension Metric {
  /// A value with its unit.
  func text(_ value: Double) -> String {
    switch kind {
    case .share: String(format: "%.3g %%", value * 100)
    case .time: value < 0.1 ? String(format: "%.3g µs", value * 1_000) : String(format: "%.3g ms", value)
    case .count: String(format: "%.0f", value)
    case .memory: String(format: "%.1f MiB", value / 1_048_576)
    }
  }
}

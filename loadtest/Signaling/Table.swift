import Foundation

/// Figures by row and server; with two servers also the ratio of the second's to the first's.
struct Table {
  private let columns: Int
  private var lines: [String]
  private static let width = 18

  init(names: [String]) {
    columns = names.count
    let head = names + (names.count == 2 ? ["second / first"] : [])
    lines = [Self.line("", head)]
  }

  mutating func title(_ title: String) { lines.append(title) }

  /// nil is a figure that was not measured; a row without figures is left out.
  mutating func row(_ title: String, _ values: [Double?]) {
    guard values.contains(where: { $0 != nil }) else { return }
    var cells = values.map { $0.map(Self.number) ?? "-" }
    if columns == 2, let first = values[0], let second = values[1], first > 0 {
      cells.append(Self.number(second / first))
    }
    lines.append(Self.line("  " + title, cells))
  }

  var text: String { lines.joined(separator: "\n") }

  private static func line(_ title: String, _ cells: [String]) -> String {
    func padding(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) }
    return title + padding(title, 30) + cells.map { padding($0, width) + $0 }.joined()
  }

  /// Three significant digits, and all digits of a large number.
  private static func number(_ value: Double) -> String {
    String(format: abs(value) >= 100 ? "%.0f" : abs(value) >= 10 ? "%.1f" : "%.2f", value)
  }
}

import Foundation

/// A plot of the HTML report, as inline SVG without scripts.
struct Chart: Sendable {
  struct Line: Sendable {
    var name: String
    /// nil where there is no figure.
    var points: [(x: Double, y: Double?)]
  }

  enum Content: Sendable {
    case lines([Line], xUnit: String)
    /// On a logarithmic scale of milliseconds.
    case bars([LatencyHistogram.Bar])
  }

  var title: String
  /// The unit of the vertical axis.
  var unit: String
  var content: Content

  /// Small, so that its text is still readable on a phone.
  private static let size = (width: 440.0, height: 230.0)
  private static let margin = (left: 52.0, right: 12.0, top: 10.0, bottom: 38.0)
  private static var plot: (width: Double, height: Double) {
    (size.width - margin.left - margin.right, size.height - margin.top - margin.bottom)
  }

  var html: String {
    let body: String
    var legend = ""
    switch content {
    case .lines(let lines, let xUnit):
      body = Self.svg(lines, title: title, unit: unit, xUnit: xUnit)
      if lines.count > 1 {
        legend = lines.enumerated().map { "<span class=\"key c\($0.offset)\">\(escaped($0.element.name))</span>" }
          .joined()
      }
    case .bars(let bars): body = Self.svg(bars, title: title, unit: unit)
    }
    return """
      <figure><figcaption>\(escaped(title)) <small>\(escaped(unit))</small></figcaption>\(body)<div class="keys">\(legend)</div></figure>
      """
  }

  // MARK: - Lines

  private static func svg(_ lines: [Line], title: String, unit: String, xUnit: String) -> String {
    let points = lines.flatMap(\.points)
    let values = points.compactMap(\.y)
    guard let most = values.max(), let first = points.map(\.x).min(), let last = points.map(\.x).max() else {
      return "<p>no figures</p>"
    }
    let yStep = step(most <= 0 ? 1 : most)
    let top = max(yStep, (most / yStep).rounded(.up) * yStep)
    let range = max(last - first, 1e-9)
    func x(_ value: Double) -> Double { margin.left + (value - first) / range * plot.width }
    func y(_ value: Double) -> Double { margin.top + (1 - value / top) * plot.height }
    var parts = grid(top: top, step: yStep, y)
    let xStep = step(range)
    for tick in stride(from: (first / xStep).rounded(.up) * xStep, through: last + xStep / 1e6, by: xStep) {
      parts.append(xLabel(number(tick, xStep), at: x(tick)))
    }
    parts.append(xLabel(xUnit, at: size.width - margin.right, line: 1))
    for (index, line) in lines.enumerated() {
      for run in runs(line.points) {
        let path = run.map { "\(coordinate(x($0.x))),\(coordinate(y($0.y)))" }.joined(separator: " ")
        if run.count == 1 {
          parts.append(
            "<circle class=\"c\(index)\" cx=\"\(coordinate(x(run[0].x)))\" cy=\"\(coordinate(y(run[0].y)))\" r=\"2.5\"/>"
          )
        } else {
          parts.append("<polyline class=\"c\(index)\" points=\"\(path)\"/>")
        }
      }
    }
    let highest = "highest \(number(most, most / 100)) \(unit)"
    return frame(parts, label: "\(title): \(lines.map(\.name).joined(separator: ", ")); \(highest)")
  }

  /// The parts of a line that have figures.
  private static func runs(_ points: [(x: Double, y: Double?)]) -> [[(x: Double, y: Double)]] {
    var runs: [[(x: Double, y: Double)]] = [[]]
    for point in points {
      if let y = point.y { runs[runs.count - 1].append((point.x, y)) } else { runs.append([]) }
    }
    return runs.filter { !$0.isEmpty }
  }

  // MARK: - Bars

  private static func svg(_ bars: [LatencyHistogram.Bar], title: String, unit: String) -> String {
    guard let first = bars.first, let last = bars.last, let most = bars.map(\.count).max(), most > 0 else {
      return "<p>no figures</p>"
    }
    let yStep = step(Double(most))
    let top = (Double(most) / yStep).rounded(.up) * yStep
    let (low, high) = (log10(first.from), log10(last.to))
    func x(_ value: Double) -> Double { margin.left + (log10(value) - low) / (high - low) * plot.width }
    func y(_ value: Double) -> Double { margin.top + (1 - value / top) * plot.height }
    var parts = grid(top: top, step: yStep, y)
    for bar in bars where bar.count > 0 {
      let (left, right) = (x(bar.from), x(bar.to))
      let height = max(1, y(0) - y(Double(bar.count)))
      parts.append(
        """
        <rect class="c0" x="\(coordinate(left + 0.5))" y="\(coordinate(y(0) - height))" \
        width="\(coordinate(max(1, right - left - 1)))" height="\(coordinate(height))">\
        <title>\(number(bar.from, bar.from / 100)) to \(number(bar.to, bar.to / 100)) ms: \(bar.count)</title></rect>
        """)
    }
    for tick in logarithmicTicks(first.from, last.to) { parts.append(xLabel(String(format: "%g", tick), at: x(tick))) }
    parts.append(xLabel("ms", at: size.width - margin.right, line: 1))
    return frame(parts, label: "\(title), \(unit): \(number(first.from, 0.01)) to \(number(last.to, 0.01)) ms")
  }

  /// Round values in each power of ten; fewer of them for a wider range.
  private static func logarithmicTicks(_ from: Double, _ to: Double) -> [Double] {
    let powers = Int(log10(from).rounded(.down))...Int(log10(to).rounded(.up))
    let digits: [Double] = log10(to / from) > 2.5 ? [1] : to / from > 6 ? [1, 2, 5] : [1, 1.5, 2, 3, 5, 7]
    return powers.flatMap { power in digits.map { $0 * pow(10, Double(power)) } }.filter { from...to ~= $0 }
  }

  // MARK: - Parts

  private static func grid(top: Double, step: Double, _ y: (Double) -> Double) -> [String] {
    stride(from: 0, through: top + step / 1e6, by: step).map { tick in
      """
      <line x1="\(coordinate(margin.left))" x2="\(coordinate(size.width - margin.right))" \
      y1="\(coordinate(y(tick)))" y2="\(coordinate(y(tick)))"/>\
      <text class="y" x="\(coordinate(margin.left - 6))" y="\(coordinate(y(tick) + 4))">\(number(tick, step))</text>
      """
    }
  }

  private static func xLabel(_ text: String, at x: Double, line: Int = 0) -> String {
    let place = size.height - margin.bottom + 16 + 16 * Double(line)
    return
      "<text class=\"\(line == 0 ? "x" : "y")\" x=\"\(coordinate(x))\" y=\"\(coordinate(place))\">\(escaped(text))</text>"
  }

  private static func frame(_ parts: [String], label: String) -> String {
    """
    <svg viewBox="0 0 \(Int(size.width)) \(Int(size.height))" role="img" aria-label="\(escaped(label))">\(parts.joined())</svg>
    """
  }

  /// About four steps of 1, 2 or 5 up to `most`.
  private static func step(_ most: Double) -> Double {
    let raw = most / 4
    let power = pow(10, log10(raw).rounded(.down))
    return [1, 2, 5, 10].map { $0 * power }.first { $0 >= raw * 0.999 } ?? raw
  }

  private static func coordinate(_ value: Double) -> String { String(format: "%.1f", value) }

  /// With as many digits as a step of `precision` needs; thousands as k.
  private static func number(_ value: Double, _ precision: Double) -> String {
    if abs(value) >= 10_000 {
      return String(format: precision < 1_000 && value < 100_000 ? "%.1fk" : "%.0fk", value / 1_000)
    }
    let digits = precision >= 1 || precision <= 0 ? 0 : min(4, Int((-log10(precision)).rounded(.up)))
    return String(format: "%.\(digits)f", value)
  }
}

/// Text for HTML, in attributes too.
func escaped(_ text: String) -> String {
  text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    .replacing("\"", with: "&quot;")
}

extension Metrics {
  /// Writes the lines of the exposition format.
  struct Page {
    private(set) var text = ""

    mutating func counter(_ name: String, _ help: String, _ values: [(labels: String, value: UInt64)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) counter\n"
      for (labels, value) in values { text += "\(name){\(labels)} \(value)\n" }
    }

    mutating func counter(_ name: String, _ help: String, _ value: UInt64) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) counter\n\(name) \(value)\n"
    }

    mutating func gauge(_ name: String, _ help: String, _ value: Int) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n\(name) \(value)\n"
    }

    mutating func histogram(_ name: String, _ help: String, _ histogram: Measurements.Histogram) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) histogram\n"
      var count: UInt64 = 0
      for (bound, more) in zip(histogram.bounds.map { "\($0)" } + ["+Inf"], histogram.counts) {
        count &+= more
        text += "\(name)_bucket{le=\"\(bound)\"} \(count)\n"
      }
      text += "\(name)_sum \(histogram.sum)\n\(name)_count \(count)\n"
    }
  }
}

extension Metrics {
  /// Writes the lines of the exposition format.
  struct Page {
    private(set) var text = ""

    mutating func counter(_ name: String, _ help: String, _ values: [(labels: String, value: UInt64)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) counter\n"
      for (labels, value) in values { text += "\(name){\(labels)} \(value)\n" }
    }

    /// - Parameter sample: labels, if any, and the value after a blank.
    mutating func line(_ name: String, _ type: String, _ help: String, _ sample: String) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n\(name)\(sample)\n"
    }

    mutating func counter(_ name: String, _ help: String, _ value: UInt64) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) counter\n\(name) \(value)\n"
    }

    mutating func gauge(_ name: String, _ help: String, _ value: Int) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n\(name) \(value)\n"
    }

    mutating func gauge(_ name: String, _ help: String, _ values: [(labels: String, value: Double)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
      for (labels, value) in values { text += "\(name){\(labels)} \(value)\n" }
    }

    /// - Parameter counts: for each bound the number of values up to it and above the previous one; one more counts the
    ///   rest.
    mutating func histogram(
      _ name: String, _ help: String, bounds: [String],
      _ series: [(labels: String, counts: [UInt64], sum: Double)]
    ) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) histogram\n"
      for (labels, counts, sum) in series {
        var count: UInt64 = 0
        for (bound, more) in zip(bounds + ["+Inf"], counts) {
          count &+= more
          text += "\(name)_bucket{\(labels),le=\"\(bound)\"} \(count)\n"
        }
        text += "\(name)_sum{\(labels)} \(sum)\n\(name)_count{\(labels)} \(count)\n"
      }
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

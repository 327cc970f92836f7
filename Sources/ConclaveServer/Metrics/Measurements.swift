import Contract
import Synchronization

/// The clients' measurements (`/app/calls/{id}/stats`), summed over all of them.
final class Measurements: Sendable {
  struct Histogram: Sendable {
    let bounds: [Double]
    /// For each bound the number of values up to it and above the previous one; the last counts the rest.
    private(set) var counts: [UInt64]
    private(set) var sum = 0.0

    init(_ bounds: [Double]) {
      self.bounds = bounds
      counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Values that no client can mean are ignored.
    mutating func add(_ value: Double?) {
      guard let value, value.isFinite, (0...1e9).contains(value) else { return }
      counts[bounds.firstIndex { value <= $0 } ?? bounds.count] &+= 1
      sum += value
    }
  }

  /// Times in seconds, loss as a fraction of 1.
  struct Values: Sendable {
    var roundTrip = Histogram([0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    var loss = Histogram([0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
    var jitter = Histogram([0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
    var freezes = Histogram([0, 1, 2, 5, 10, 20, 50])
    var firstFrame = Histogram([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])
  }

  private let stored = Mutex(Values())

  var values: Values { stored.withLock { $0 } }

  func add(_ numbers: QualityNumbers) {
    stored.withLock { values in
      values.roundTrip.add(numbers.rtt.map { $0 / 1_000 })
      values.loss.add(numbers.loss)
      values.jitter.add(numbers.jitter.map { $0 / 1_000 })
      values.freezes.add(numbers.freezes)
      values.firstFrame.add(numbers.firstFrameMs.map { $0 / 1_000 })
    }
  }
}

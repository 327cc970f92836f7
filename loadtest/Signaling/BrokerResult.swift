import MediaModel

/// The measurements of all runs at one broker.
struct BrokerResult {
  /// Median, minimum and maximum of the runs.
  struct Spread: Encodable {
    private(set) var median = 0.0
    private(set) var min = 0.0
    private(set) var max = 0.0

    /// nil without values.
    init?(_ values: [Double]) {
      let sorted = values.sorted()
      guard let first = sorted.first, let last = sorted.last else { return nil }
      let middle = sorted.count / 2
      median = sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
      (min, max) = (first, last)
    }
  }

  let address: BrokerAddress
  private(set) var serverName: String?
  /// The loads, in the order of the command line.
  private(set) var fanOuts: [FanOut: [FanOutMeasurement]] = [:]
  private var connectSeconds: [Double] = []
  /// Measured only in the first run: a process may keep freed memory, and later runs would reuse it.
  private(set) var bytesAConnection: Double?

  init(_ address: BrokerAddress) { self.address = address }

  mutating func add(_ crowd: CrowdMeasurement) {
    if connectSeconds.isEmpty { bytesAConnection = crowd.bytesAConnection }
    connectSeconds.append(crowd.connectTime.seconds)
    serverName = crowd.serverName ?? serverName
  }

  mutating func add(_ measurement: FanOutMeasurement, of load: FanOut) {
    fanOuts[load, default: []].append(measurement)
    serverName = measurement.serverName ?? serverName
  }

  var lost: Int { fanOuts.values.joined().reduce(0) { $0 + $1.lost } }

  /// The expected deliveries.
  var sent: Int { fanOuts.values.joined().reduce(0) { $0 + $1.due } }

  var connectTime: Spread? { Spread(connectSeconds) }

  func spread(_ load: FanOut, _ value: (FanOutMeasurement) -> Double?) -> Spread? {
    Spread(fanOuts[load, default: []].compactMap(value))
  }
}

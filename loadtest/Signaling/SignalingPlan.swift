import ArgumentParser

/// The measurements to make, from the command line.
struct SignalingPlan {
  var fanOuts: [FanOut]
  /// Connections that are opened at once.
  var connections: Int
  var destination: String
  var runs: Int
  /// The duration of each fan-out.
  var duration: Duration
  var joinTimeout: Duration
}

/// One publisher and its subscribers.
struct FanOut: Hashable, ExpressibleByArgument {
  var subscribers: Int
  /// Messages per second; nil: as fast as they arrive.
  var rate: Double?

  /// The default loads, by which Conclave is judged.
  static let usual = [
    FanOut(subscribers: 100, rate: nil), FanOut(subscribers: 100, rate: 50), FanOut(subscribers: 1_000, rate: 5),
  ]

  init(subscribers: Int, rate: Double?) {
    self.subscribers = subscribers
    self.rate = rate
  }

  init?(argument: String) {
    let parts = argument.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, let subscribers = Int(parts[0]), (1...19_000).contains(subscribers) else { return nil }
    if parts[1] == "max" {
      self.init(subscribers: subscribers, rate: nil)
    } else {
      guard let rate = Double(parts[1]), rate > 0, rate <= 100_000 else { return nil }
      self.init(subscribers: subscribers, rate: rate)
    }
  }
}

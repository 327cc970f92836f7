import MediaModel

/// Puts each load on the brokers in turn, run by run, so that disturbances of the machine affect all equally.
struct SignalingRun {
  private let plan: SignalingPlan
  private let brokers: [MeasuredBroker]
  private let progress = ProgressLine()

  init(_ plan: SignalingPlan, brokers: [MeasuredBroker]) {
    self.plan = plan
    self.brokers = brokers
  }

  /// An interrupted test reports the measurements that are complete.
  func perform() throws -> SignalingReport {
    defer { progress.finish() }
    var results = brokers.map { BrokerResult($0.address) }
    var part = "connecting"
    do {
      try measure(&results, &part)
    } catch is Swarm.Interrupted {
      return SignalingReport(plan: plan, results: results, interruption: part)
    }
    return SignalingReport(plan: plan, results: results, interruption: nil)
  }

  private func measure(_ results: inout [BrokerResult], _ part: inout String) throws {
    for run in 1...plan.runs {
      if plan.connections > 0 {
        for (index, broker) in brokers.enumerated() {
          part = "\(plan.connections) connections at once"
          prepare(run, index, part)
          results[index].add(try CrowdMeasurement(at: broker, plan))
        }
      }
      for load in plan.fanOuts {
        for (index, broker) in brokers.enumerated() {
          part = load.title
          prepare(run, index, part)
          results[index].add(try FanOutMeasurement(load, at: broker, plan), of: load)
        }
      }
    }
  }

  private func prepare(_ run: Int, _ index: Int, _ what: String) {
    let broker = brokers[index]
    progress.show("run \(run) of \(plan.runs), \(broker.address.host):\(broker.address.port): \(what)")
    // Wait for all brokers, since they may share a core.
    for broker in brokers { broker.settle() }
  }
}

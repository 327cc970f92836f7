import LinuxIO
import MediaModel

/// Many connections that are opened at once, subscribe, and stay idle.
struct CrowdMeasurement {
  /// The time until the last was CONNECTED.
  let connectTime: Duration
  /// The memory that a connection with one subscription adds to the broker; nil when its process is not known.
  let bytesAConnection: Double?
  let serverName: String?

  init(at broker: MeasuredBroker, _ plan: SignalingPlan) throws {
    let before = broker.usage
    let swarm = try Swarm(broker)
    connectTime = try swarm.connect(plan.connections, atOnce: .max, within: plan.joinTimeout)
    try swarm.subscribe(to: plan.destination, excluding: 0, within: plan.joinTimeout)
    broker.settle()
    bytesAConnection = before.flatMap { before in
      broker.usage.map { (Double($0.residentBytes) - Double(before.residentBytes)) / Double(plan.connections) }
    }
    serverName = swarm.serverName
  }
}

extension MeasuredBroker {
  var usage: ProcessUsage? { process.flatMap { ProcessUsage(of: $0) } }

  /// Waits until the broker is idle, at most 30 s: its work for closed connections would count for the next
  /// measurement.
  func settle() {
    let end = MonotonicClock.now().advanced(by: .seconds(30))
    let step = Duration.milliseconds(500)
    repeat {
      if Interrupt.hasCome { return }
      let before = usage
      MonotonicClock.sleep(nanoseconds: UInt64(step.nanoseconds))
      guard let before, let after = usage else { return }
      if after.cpuNanoseconds &- before.cpuNanoseconds < UInt64(step.nanoseconds) * 3 / 100 { return }
    } while MonotonicClock.now() < end
  }
}

import LinuxIO
import MediaModel

/// One publisher and its subscribers, measured for some seconds.
struct FanOutMeasurement {
  private(set) var deliveriesPerSecond = 0.0
  /// The CPU time of the broker's process; nil when it is not known.
  private(set) var cpuMicrosPerDelivery: Double?
  /// The share of a core that this process used. Near 1, the load test itself was the limit.
  private(set) var ownShare = 0.0
  private(set) var latency = LatencyHistogram()
  /// Messages that some subscriber did not get.
  private(set) var lost = 0
  /// Messages times subscribers.
  private(set) var due = 0
  let serverName: String?

  /// The messages in flight at full speed: enough that the broker always has work, and few enough that none waits for
  /// long.
  private static let window = 64
  private static let warmUp = Duration.seconds(1)
  /// Connections opened at a time: fewer than any server's backlog, since crowds are measured elsewhere.
  private static let atOnce = 50
  /// Time for the last messages to arrive.
  private static let drainTime = Duration.seconds(5)

  private let load: FanOut
  private let destination: String
  private var sent = 0
  private var next = MonotonicClock.now()

  init(_ load: FanOut, at broker: MeasuredBroker, _ plan: SignalingPlan) throws {
    self.load = load
    destination = plan.destination
    let swarm = try Swarm(broker)
    _ = try swarm.connect(1 + load.subscribers, atOnce: Self.atOnce, within: plan.joinTimeout)
    try swarm.subscribe(to: plan.destination, excluding: 1, within: plan.joinTimeout)
    serverName = swarm.serverName
    next = MonotonicClock.now()
    try publish(swarm, until: next.advanced(by: Self.warmUp))
    try measure(swarm, broker, plan.duration)
    let end = MonotonicClock.now().advanced(by: Self.drainTime)
    while swarm.deliveries < sent * load.subscribers, MonotonicClock.now() < end { try swarm.turn(until: end) }
    due = sent * load.subscribers
    lost = due - swarm.deliveries
    latency = swarm.latency
  }

  private mutating func measure(_ swarm: Swarm, _ broker: MeasuredBroker, _ duration: Duration) throws {
    let own = ProcessUsage()
    let usage = broker.usage
    let before = swarm.deliveries
    let start = MonotonicClock.now()
    swarm.measuringSince = start
    try publish(swarm, until: start.advanced(by: duration))
    let seconds = start.duration(to: MonotonicClock.now()).seconds
    let deliveries = Double(swarm.deliveries - before)
    deliveriesPerSecond = deliveries / seconds
    if let usage, let after = broker.usage, deliveries > 0 {
      cpuMicrosPerDelivery = Double(after.cpuNanoseconds &- usage.cpuNanoseconds) / 1000 / deliveries
    }
    if let own, let after = ProcessUsage() {
      ownShare = Double(after.cpuNanoseconds &- own.cpuNanoseconds) / 1e9 / seconds
    }
  }

  private mutating func publish(_ swarm: Swarm, until end: Instant) throws {
    while true {
      let now = MonotonicClock.now()
      guard now < end else { return }
      if let rate = load.rate {
        // A message carries the time at which it was due, so that a late one counts as late.
        while next <= now {
          send(swarm, at: next)
          next = next.advanced(by: .nanoseconds(Int64(1e9 / rate)))
        }
        try swarm.turn(until: min(next, end))
      } else {
        while sent * load.subscribers - swarm.deliveries <= (Self.window - 1) * load.subscribers {
          send(swarm, at: now)
        }
        try swarm.turn(until: end)
      }
    }
  }

  private mutating func send(_ swarm: Swarm, at time: Instant) {
    swarm.publish(to: destination, at: time)
    sent += 1
  }
}

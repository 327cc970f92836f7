/// An order to send at `rate` until `bytes` and `packets` have left, filled up with padding if media does not suffice.
package struct ProbeOrder: Equatable, Sendable {
  /// 1...255: passed to `RateEstimator.sent` with each packet of the probe.
  package var id: UInt8
  /// In bit/s.
  package var rate: Int
  package var bytes: Int
  package var packets: Int
}

/// A running probe: what left, what arrived, and how fast (libwebrtc's `ProbeBitrateEstimator`).
struct Probe: Sendable {
  var order: ProbeOrder
  /// The rate that the probe has to reach.
  var goal: Int
  var began: Microseconds
  /// How much the delay varied before it.
  var deviation: Microseconds

  private var sentPackets = 0
  private var sentBytes = 0
  private var lastSize = 0
  private var firstDeparture: Microseconds = 0
  private(set) var lastDeparture: Microseconds = 0
  private(set) var lastNumber: UInt16 = 0

  private var received = 0
  private var receivedBytes = 0
  private var reported = 0
  private var firstSize = 0
  private var firstArrival: Microseconds = 0
  private var lastArrival: Microseconds = 0

  init(order: ProbeOrder, goal: Int, began: Microseconds, deviation: Microseconds) {
    self.order = order
    self.goal = goal
    self.began = began
    self.deviation = deviation
  }

  var isSent: Bool { sentPackets >= order.packets && sentBytes >= order.bytes }

  /// Everything that left was reported.
  var isReported: Bool { isSent && reported >= sentPackets }

  mutating func sent(_ number: UInt16, size: Int, now: Microseconds) {
    if sentPackets == 0 { firstDeparture = now }
    sentPackets += 1
    sentBytes += size
    lastSize = size
    lastDeparture = now
    lastNumber = number
  }

  mutating func arrived(at arrival: Microseconds, size: Int) {
    if received == 0 || arrival < firstArrival {
      firstArrival = arrival
      firstSize = size
    }
    if received == 0 || arrival > lastArrival { lastArrival = arrival }
    received += 1
    receivedBytes += size
    reported += 1
  }

  mutating func lost() { reported += 1 }

  /// The rate in bit/s that the path has shown; nil when too little arrived.
  /// - Parameters:
  ///   - loss: the share that this path loses at any rate.
  ///   - deviation: of the delay. With much of it the receiving rate is uncertain, and being a little below the sending rate says nothing.
  ///
  /// In range: arrivals are within 2^57, and `rate` is below 2^63 / 100,000.
  func result(loss: Double, deviation: Microseconds) -> Int? {
    let expected = Double(sentPackets) * (1 - loss)
    guard received >= 4, Double(received) >= 0.7 * expected else { return nil }
    let sendTime = lastDeparture - firstDeparture
    let receiveTime = lastArrival - firstArrival
    guard sendTime > 0, receiveTime > 0, receiveTime < .second else { return nil }
    let sending = rate(bytes: sentBytes - lastSize, in: sendTime)
    let arriving = Double(rate(bytes: receivedBytes - firstSize, in: receiveTime)) / max(0.5, 1 - loss)
    let receiving = Int(min(arriving, Double(Int.max / 2)))
    // An arrival rate this far above the sending rate cannot be right.
    guard receiving < 2 * sending || deviation > 3 * .millisecond else { return nil }
    // The receiving rate was the path's own: leave it some room.
    if receiving < sending / 10 * 9, deviation < 8 * .millisecond { return receiving / 20 * 19 }
    return min(sending, receiving)
  }
}

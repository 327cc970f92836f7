import CongestionControl

/// A controller, as the harness uses it.
protocol RateController {
  var target: Int { get }
  var pacingRate: Int { get }
  var isCongested: Bool { get }
  var demand: RateDemand { get set }
  func proven(now: Microseconds) -> Int
  mutating func sent(_ number: UInt16, size: Int, kind: SentKind, probe: UInt8, now: Microseconds)
  mutating func report(_ packets: [(number: Int, arrival: Microseconds?)], now: Microseconds)
  mutating func tick(now: Microseconds)
  mutating func probe(now: Microseconds) -> ProbeOrder?
}

extension RateEstimator: RateController {
  mutating func report(_ packets: [(number: Int, arrival: Microseconds?)], now: Microseconds) {
    for packet in packets {
      let number = UInt16(truncatingIfNeeded: packet.number)
      if let arrival = packet.arrival {
        received(number, arrival: arrival, now: now)
      } else {
        missing(number, now: now)
      }
    }
    endReport(now: now)
  }
}

import CongestionControl

/// `RobustThroughputEstimator`: 20 to 500 packets of 1 to 5 s, the lower of the sending and the receiving rate, without the largest gap.
struct RobustThroughput {
  private var window: [(sent: Microseconds, arrived: Microseconds, size: Int)] = []
  private var head = 0

  mutating func arrived(sent: Microseconds, at arrival: Microseconds, size: Int) {
    window.append((sent, arrival, size))
    while window.count - head > 500 || (window.count - head > 20 && arrival - window[head].arrived > second) {
      head += 1
    }
    if head > 1_000 {
      window.removeFirst(head)
      head = 0
    }
  }

  /// bit/s; nil before 20 packets.
  var value: Int? {
    let packets = window[head...]
    guard packets.count >= 20 else { return nil }
    var gap: Microseconds = 0
    var previous = packets.first!.arrived
    var bytes = 0
    var firstSent = Microseconds.max
    var lastSent = Microseconds.min
    var firstArrival = Microseconds.max
    var lastArrival = Microseconds.min
    for packet in packets {
      gap = max(gap, packet.arrived - previous)
      previous = max(previous, packet.arrived)
      bytes += packet.size
      firstSent = min(firstSent, packet.sent)
      lastSent = max(lastSent, packet.sent)
      firstArrival = min(firstArrival, packet.arrived)
      lastArrival = max(lastArrival, packet.arrived)
    }
    let sending = max(lastSent - firstSent, 1)
    let receiving = max(lastArrival - firstArrival - gap, 1)
    let rate = { (bytes: Int, time: Microseconds) in bytes * 8_000_000 / Int(time) }
    return min(rate(bytes - packets.last!.size, sending), rate(bytes - packets.first!.size, receiving))
  }
}

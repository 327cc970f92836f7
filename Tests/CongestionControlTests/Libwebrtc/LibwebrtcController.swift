import CongestionControl

@testable import struct CongestionControl.DelayTrend
@testable import struct CongestionControl.Probe
@testable import struct CongestionControl.SendHistory

/// A port of libwebrtc's sending side (M150: `GoogCcNetworkController` with `DelayBasedBwe`, `LossBasedBweV2`,
/// `ProbeController`, `AlrDetector`) as an SFU would use it. It shares the trendline and the measurement of probes with
/// our estimator, which took them from libwebrtc.
struct LibwebrtcController: RateController {
  private static let start = 600_000.0

  var demand = RateDemand(allocated: 0, nextStep: nil, wished: 0)
  private(set) var target = Int(start)
  private var roundTrip = 100 * millisecond
  private var history = SendHistory()
  private var trend = DelayTrend()
  private var throughput = RobustThroughput()
  private var control = RateControl(start: start)
  private var loss = LossBasedEstimate()
  private var recovered = false

  // ProbeController.
  private var probes: [Probe] = []
  private var waiting: [(rate: Double, at: Microseconds)] = []
  private var lastID: UInt8 = 0
  private var isWaitingForResult = true
  private var furtherAbove = Double.infinity
  private var lastInitiated: Microseconds = .min
  private var hasStarted = false
  private var mediaPackets = 0
  private var beforeDrop: (rate: Double, at: Microseconds)?

  // AlrDetector.
  private var budget = 0.0
  private var budgetUpdated: Microseconds = 0
  private var limitedSince: Microseconds?
  private var limitedEnded: Microseconds = .min

  private var lastReport: Microseconds = 0
  private var lastBackoff: Microseconds = .min
  private var backoff: Double?

  var pacingRate: Int { max(target / 2 * 3, 300_000) }
  var isCongested: Bool { false }
  /// It does not know margins, and takes steps without one.
  func proven(now: Microseconds) -> Int { target * 2 }

  mutating func sent(_ number: UInt16, size: Int, kind: SentKind, probe: UInt8, now: Microseconds) {
    history.append(number, size: size, kind: kind, probe: probe, now: now)
    if kind == .video { mediaPackets += 1 }
    for i in probes.indices where probes[i].order.id == probe { probes[i].sent(number, size: size, now: now) }
    // 65 % of the estimate over 500 ms.
    let most = Double(target) / 8 / 2
    budget += 0.65 * Double(target) / 8 * Double(now - budgetUpdated) / 1_000_000
    budgetUpdated = now
    budget = min(max(budget - Double(size), -most), most)
    if budget / most > 0.8, limitedSince == nil { limitedSince = now }
    if budget / most < 0.5, limitedSince != nil {
      limitedSince = nil
      limitedEnded = now
    }
  }

  mutating func report(_ packets: [(number: Int, arrival: Microseconds?)], now: Microseconds) {
    var results: [(sent: Microseconds, arrival: Microseconds, size: Int, probe: UInt8)] = []
    var size = 0.0
    var lost = 0.0
    var first = Microseconds.max
    var last = Microseconds.min
    for packet in packets {
      let number = UInt16(truncatingIfNeeded: packet.number)
      guard let record = history.report(number, received: packet.arrival != nil) else { continue }
      let sent = SendHistory.departure(of: record, now: now)
      first = min(first, sent)
      last = max(last, sent)
      if record.state == .inFlight { size += Double(record.size) / 1_000 }
      if let arrival = packet.arrival {
        results.append((sent, arrival, Int(record.size), record.probe))
      } else {
        lost += Double(record.size) / 1_000
        for i in probes.indices where probes[i].order.id == record.probe { probes[i].lost() }
      }
    }
    guard !results.isEmpty else { return }
    lastReport = now
    results.sort { $0.arrival < $1.arrival }
    roundTrip = now - results.map(\.sent).max()!
    for packet in results {
      trend.arrived(departure: packet.sent, arrival: packet.arrival, now: now)
      throughput.arrived(sent: packet.sent, at: packet.arrival, size: packet.size)
      for i in probes.indices where probes[i].order.id == packet.probe {
        probes[i].arrived(at: packet.arrival, size: packet.size)
      }
    }
    let measured = probeResult(now: now)
    let acknowledged = throughput.value.map(Double.init)
    if trend.usage == .over {
      if let acknowledged {
        if control.mayReduceFurther(acknowledged, roundTrip: roundTrip, now: now) {
          control.update(.over, acknowledged, roundTrip: roundTrip, now: now)
        }
      } else if control.lastDecrease == .min || now - control.lastDecrease > roundTrip {
        control.set(control.rate / 2, now: now)
      }
    } else if let measured {
      control.set(measured, now: now)
    } else {
      control.update(trend.usage, acknowledged, roundTrip: roundTrip, now: now)
    }
    let estimate =
      loss.update(
        size: size, lost: lost, from: first, to: last, delayBased: control.rate / 1_000,
        acknowledged: acknowledged.map { $0 / 1_000 }) * 1_000
    set(estimate, now: now)
    backoff = nil
  }

  private mutating func set(_ rate: Double, now: Microseconds) {
    let old = Double(target)
    target = max(30_000, Int(rate))
    if rate < 0.66 * old { beforeDrop = (old, now) }
    // SetEstimatedBitrate: continue while the result is above 0.7 of what was sent.
    if isWaitingForResult, rate > furtherAbove { initiate([2 * rate], further: true, now: now) }
  }

  private mutating func probeResult(now: Microseconds) -> Double? {
    var result: Double?
    for i in probes.indices.reversed() where probes[i].isReported || now - probes[i].began > second {
      if let value = probes[i].result(loss: 0, deviation: 0) { result = max(result ?? 0, Double(value)) }
      probes.remove(at: i)
    }
    return result
  }

  // MARK: Probes

  private mutating func initiate(_ rates: [Double], further: Bool, now: Microseconds) {
    var further = further
    for rate in rates {
      let limit = 2 * Double(max(demand.wished, 1))
      if rate >= limit { further = false }
      waiting.append((min(rate, limit), now))
      furtherAbove = further ? 0.7 * min(rate, limit) : .infinity
    }
    isWaitingForResult = further
    lastInitiated = now
  }

  mutating func tick(now: Microseconds) {
    if isWaitingForResult, lastInitiated != .min, now - lastInitiated > second {
      isWaitingForResult = false
      furtherAbove = .infinity
    }
    // RttBasedBackoff: no progress in the feedback for 3 s.
    if lastReport > 0, now - lastReport > 3 * second, lastBackoff == .min || now - lastBackoff > second {
      lastBackoff = now
      control.set(control.rate * 0.8, now: now)
      target = max(30_000, Int(Double(target) * 0.8))
    }
    guard !isWaitingForResult, hasStarted else { return }
    if let limitedSince, loss.state == .delayBased, trend.usage != .over {
      if let drop = beforeDrop, now - drop.at < 5 * second, lastInitiated == .min || now - lastInitiated > 5 * second,
        Double(target) < 0.85 * drop.rate
      {
        beforeDrop = nil
        initiate([0.85 * drop.rate], further: false, now: now)
      } else if now - max(limitedSince, lastInitiated) > 5 * second, target < 2 * demand.wished {
        initiate([2 * Double(target)], further: true, now: now)
      }
    }
  }

  mutating func probe(now: Microseconds) -> ProbeOrder? {
    if !hasStarted, mediaPackets >= 5 {
      hasStarted = true
      initiate([3 * Self.start, 6 * Self.start], further: true, now: now)
    }
    guard let next = waiting.first else { return nil }
    waiting.removeFirst()
    guard now - next.at < 500 * millisecond else { return nil }
    lastID = lastID == 255 ? 1 : lastID + 1
    let order = ProbeOrder(id: lastID, rate: Int(next.rate), bytes: Int(next.rate / 8 * 0.015), packets: 5)
    probes.append(Probe(order: order, goal: 0, began: now, deviation: 0))
    return order
  }
}

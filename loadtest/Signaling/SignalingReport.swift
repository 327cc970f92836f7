import Foundation
import JSON

/// The result of a load test of signaling.
struct SignalingReport: LoadReport {
  let plan: SignalingPlan
  let results: [BrokerResult]

  /// The phase in which the test was interrupted.
  let interruption: String?

  /// The run itself fails if a connection does not sign in.
  var faults: [String] {
    interruption.map { hasFigures ? [] : ["interrupted (\($0)) before there was a measurement"] } ?? []
  }

  var losses: [String] {
    let lost = results.reduce(0) { $0 + $1.lost }
    return lost == 0 ? [] : ["\(lost) messages were lost"]
  }

  let samples: [Sample] = []

  private var hasFigures: Bool { results.contains { !$0.fanOuts.isEmpty || $0.connectTime != nil } }

  func page(_ verdict: Verdict) -> Page? { nil }

  /// The first server's figures at its worst load; medians of the runs.
  func figure(_ metric: Metric) -> Double? {
    guard let first = results.first else { return nil }
    func worst(_ figure: Figure) -> Double? { plan.fanOuts.compactMap { first.spread($0, figure.value)?.median }.max() }
    return switch metric {
    case .loss: first.sent > 0 ? Double(first.lost) / Double(first.sent) : nil
    case .p50: worst(.median)
    case .p99: worst(.late)
    case .packets: plan.fanOuts.compactMap { first.spread($0, Figure.rate.value)?.median }.min()
    case .cpuPerPacket: worst(.cpu).map { $0 / 1_000 }
    case .ownCPU: worst(.own)
    case .joinMax: first.connectTime.map { $0.median * 1_000 }
    default: nil
    }
  }

  var text: String {
    var table = Table(names: results.map { $0.serverName ?? "\($0.address.host):\($0.address.port)" })
    for load in plan.fanOuts {
      table.title(load.title)
      for figure in Figure.allCases {
        table.row(figure.title, results.map { $0.spread(load, figure.value)?.median })
      }
    }
    if plan.connections > 0 {
      table.title("\(plan.connections) connections at once")
      table.row("all CONNECTED, s", results.map { $0.connectTime?.median })
      table.row("memory of an idle one, KB", results.map { $0.bytesAConnection.map { $0 / 1000 } })
    }
    table.row("messages lost", results.map { Double($0.lost) })
    let runs = plan.runs == 1 ? "1 run" : "median of \(plan.runs) runs"
    return table.text + "\n\(StampedBody.length)-byte bodies, \(runs)"
      + (interruption.map { "\nnote              interrupted: \($0)" } ?? "")
  }

  func json(_ verdict: Verdict) throws -> [UInt8] {
    try JSONCoding.encode(
      Content(
        scenario: "signaling", runs: plan.runs, bodyBytes: StampedBody.length,
        servers: results.map { Content.BrokerFigures($0, plan) }, interrupted: interruption, faults: verdict.faults,
        ok: verdict.isOK))
  }

  /// A figure of one load.
  private enum Figure: CaseIterable {
    case rate, cpu, own, median, late

    var title: String {
      switch self {
      case .rate: "deliveries a second"
      case .cpu: "server CPU, µs a delivery"
      case .own: "this test's share of a core"
      case .median: "latency p50, ms"
      case .late: "latency p99, ms"
      }
    }

    func value(_ measurement: FanOutMeasurement) -> Double? {
      switch self {
      case .rate: measurement.deliveriesPerSecond
      case .cpu: measurement.cpuMicrosPerDelivery
      case .own: measurement.ownShare
      case .median: measurement.latency.milliseconds(atShare: 0.5)
      case .late: measurement.latency.milliseconds(atShare: 0.99)
      }
    }
  }

  private struct Content: Encodable {
    struct Load: Encodable {
      var subscribers: Int
      var rate: Double?
      var deliveriesPerSecond, cpuMicrosPerDelivery, ownShare, latencyP50Ms, latencyP99Ms: BrokerResult.Spread?

      init(_ load: FanOut, _ result: BrokerResult) {
        subscribers = load.subscribers
        rate = load.rate
        deliveriesPerSecond = result.spread(load, Figure.rate.value)
        cpuMicrosPerDelivery = result.spread(load, Figure.cpu.value)
        ownShare = result.spread(load, Figure.own.value)
        latencyP50Ms = result.spread(load, Figure.median.value)
        latencyP99Ms = result.spread(load, Figure.late.value)
      }
    }

    struct BrokerFigures: Encodable {
      var name: String?
      var fanOuts: [Load]
      var connections: Int
      var connectSeconds: BrokerResult.Spread?
      var bytesAConnection: Double?
      var lost: Int

      init(_ result: BrokerResult, _ plan: SignalingPlan) {
        name = result.serverName
        fanOuts = plan.fanOuts.map { Load($0, result) }
        connections = plan.connections
        connectSeconds = result.connectTime
        bytesAConnection = result.bytesAConnection
        lost = result.lost
      }
    }

    var scenario: String
    var runs, bodyBytes: Int
    var servers: [BrokerFigures]
    var interrupted: String?
    var faults: [String]
    var ok: Bool
  }
}

extension FanOut {
  var title: String {
    "1 -> \(subscribers) " + (rate.map { String(format: "x %g/s", $0) } ?? "at full speed")
  }
}

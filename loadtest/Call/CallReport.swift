import Foundation
import MediaModel
import Synchronization

/// The measurements of a test with calls when it ends.
struct CallOutcome: Sendable {
  /// nil for an interrupted test without a measurement, and for a ramp.
  var measurement: Measurement?
  /// While participants joined; nil for a ramp.
  var joining: OwnUsage?
  var steps: [RampStep] = []
  var costs: [ChangeCost] = []
  var samples: [Sample] = []
  /// Since the test began.
  var tally = Tally()
  /// The phase in which it was interrupted.
  var interruption: String?
}

/// The result of a load test with calls.
struct CallReport: LoadReport {
  let plan: CallPlan
  let outcome: CallOutcome
  /// For a ramp, the last step within the limits, or its first.
  let measurement: Measurement?
  let joinTimes: LatencyHistogram
  let joined: Int
  /// Participants that should have joined.
  let invited: Int
  let failures: [String]
  let returns: Returns?
  /// The frames that each participant opened in each of its stays.
  let stays: [[StayCount]]

  init(plan: CallPlan, participants: [SimulatedParticipant], _ outcome: CallOutcome) {
    self.plan = plan
    self.outcome = outcome
    measurement = outcome.measurement ?? (outcome.steps.last { $0.limit == nil } ?? outcome.steps.first)?.measurement
    var times = LatencyHistogram()
    for time in participants.flatMap(\.joinTimes) { times.record(nanoseconds: UInt64(max(0, time.nanoseconds))) }
    joinTimes = times
    joined = participants.count { $0.joinTime != nil }
    invited =
      if case .ramp(let step, _) = plan.course { outcome.steps.last?.participants ?? min(step, plan.total) } else {
        plan.total
      }
    failures = Array(Set(participants.compactMap(\.failure))).sorted()
    returns = if case .storm = plan.course { Returns(participants) } else { plan.outages ? Returns(participants) : nil }
    stays = participants.map { $0.moments.withLock { $0.stays.map(\.state.count) } }
  }

  var samples: [Sample] { outcome.samples }

  /// The last step of a ramp that passed no limit.
  var lastGoodStep: RampStep? { outcome.steps.last { $0.limit == nil } }

  var faults: [String] {
    var faults: [String] = []
    if let phase = outcome.interruption, measurement == nil {
      faults.append("interrupted (\(phase)) before there was a measurement")
    } else if measurement == nil {
      faults.append("nothing was measured")
    }
    if plan.isRamp {
      if let first = outcome.steps.first?.limit { faults.append("the first step passed a limit: \(first)") }
    } else {
      if joined < plan.total, outcome.interruption == nil || measurement != nil {
        faults.append("\(joined) of \(plan.total) joined")
      }
      faults += failures
    }
    if outcome.tally.decryptFailures > 0 { faults.append("\(outcome.tally.decryptFailures) frames did not open") }
    if let returns, returns.away > 0, outcome.interruption == nil || plan.outages {
      faults.append("\(returns.away) did not come back")
    }
    return faults
  }

  /// Impaired participants lose what their paths drop. A server that died loses what was in flight, and a ramp ends
  /// with losses.
  var losses: [String] {
    guard !plan.outages, !plan.isRamp, let measurement else { return [] }
    guard measurement.delivery.expected > 0 else { return ["no packet was expected"] }
    let lost = measurement.undisturbed.expected - measurement.undisturbed.received
    let losses = lost == 0 ? [] : ["\(lost) of \(measurement.undisturbed.expected) packets were lost"]
    guard plan.isLayered else { return losses }
    let layers = measurement.layers
    guard layers.total > 0 else { return losses + ["no frame of a layer came"] }
    let isDamaged = layers.undecodable > 0 && plan.impairment == nil
    return losses + (isDamaged ? ["\(layers.undecodable) of \(layers.total) frames could not be decoded"] : [])
  }

  func figure(_ metric: Metric) -> Double? {
    func late(_ share: Double) -> Double? { joinTimes.count > 0 ? joinTimes.milliseconds(atShare: share) : nil }
    return switch metric {
    case .joinP50: late(0.5)
    case .joinP99: late(0.99)
    case .joinMax: late(1)
    case .joined: Double(joined) / Double(invited)
    case .rejoined: returns.map { 1 - Double($0.away) / Double(plan.total) }
    case .rejoinP99: returns.flatMap { $0.gapCount > 0 ? $0.gaps.milliseconds(atShare: 0.99) : nil }
    case .undecryptable: Double(outcome.tally.decryptFailures)
    default: measurement?.figure(metric)
    }
  }
}

extension CallReport {
  /// How the participants came back: from a server that died, or from a lost connection.
  struct Returns: Sendable {
    var gaps = LatencyHistogram()
    var gapCount = 0
    /// Participants that were not back at the end.
    var away = 0

    init(_ participants: [SimulatedParticipant]) {
      for participant in participants {
        let moments = participant.moments.withLock { $0 }
        if !moments.absences.isBack { away += 1 }
        gapCount += moments.absences.gaps.count
        for gap in moments.absences.gaps { gaps.record(nanoseconds: UInt64(max(0, gap.nanoseconds))) }
      }
    }
  }
}

import CongestionControl

/// A figure of one run.
struct Measure {
  var name: String
  var value: Double
  var isLowerBetter: Bool
  /// Differences up to this much are noise.
  var tolerance: Double

  static func lower(_ name: String, _ value: Double, tolerance: Double = 0) -> Measure {
    Measure(name: name, value: value, isLowerBetter: true, tolerance: tolerance)
  }

  static func higher(_ name: String, _ value: Double, tolerance: Double = 0) -> Measure {
    Measure(name: name, value: value, isLowerBetter: false, tolerance: tolerance)
  }
}

/// One row of the table: a path, the events on it, and the measures.
struct Scenario: Sendable {
  var name: String
  var run: @Sendable (_ seed: UInt64, _ controller: () -> any RateController) -> [Measure]

  static let all: [Scenario] =
    [start] + fallsAndRises + losses + [bursts(0.02), bursts(0.05), jitter] + shared + [cubic] + feedback
    + [starvation, policer]

  // MARK: One flow

  private static func single(
    _ schedule: [(from: Microseconds, rate: Int)] = [(0, 3_000_000)], queue: Microseconds = 300 * millisecond,
    path: PathModel, seconds: Int, seed: UInt64, _ controller: () -> any RateController
  ) -> World {
    let world = World(schedule: schedule, limit: queue, paths: [path], seed: seed, controller: controller)
    world.run(until: Microseconds(seconds) * second)
    return world
  }

  private static var start: Scenario {
    Scenario(name: "1 start on 5 Mbit/s, RTT 50") { seed, controller in
      let world = single([(0, 5_000_000)], path: PathModel(), seconds: 12, seed: seed, controller)
      return [.lower("top after s", world.flows[0].seconds(until: Flow.top, in: 0..<10 * second), tolerance: 0.1)]
    }
  }

  private static var fallsAndRises: [Scenario] {
    let paths: [(String, Int, Int)] = [
      ("2", 300, 50), ("2", 300, 150), ("2", 300, 300), ("2", 150, 50), ("2", 150, 300), ("3", 50, 50),
      ("4", 1_000, 150),
    ]
    return paths.map { number, queue, roundTrip in
      Scenario(name: "\(number) 3 → 0.5 → 3 Mbit/s, queue \(queue), RTT \(roundTrip)") { seed, controller in
        let world = single(
          [(0, 3_000_000), (20 * second, 500_000), (40 * second, 3_000_000)], queue: Microseconds(queue) * millisecond,
          path: PathModel { $0.roundTrip = Microseconds(roundTrip) * millisecond }, seconds: 80, seed: seed, controller)
        let flow = world.flows[0]
        return [
          .lower("down s", flow.seconds(untilBelow: 500_000, in: 20 * second..<40 * second), tolerance: 0.2),
          .lower("up s", flow.seconds(until: Flow.top, in: 40 * second..<80 * second), tolerance: 0.3),
          .lower("queue p95 ms", world.queuePercentile(0.95, 22 * second..<40 * second), tolerance: 10),
          .higher("kbit/s low", Double(flow.log.rate(22 * second..<40 * second)) / 1_000, tolerance: 20),
        ]
      }
    }
  }

  private static func steady(
    _ name: String, roundTrip: Int = 50, queue: Int = 300, _ change: @escaping @Sendable (inout PathModel) -> Void
  ) -> Scenario {
    Scenario(name: name) { seed, controller in
      let path = PathModel {
        $0.roundTrip = Microseconds(roundTrip) * millisecond
        change(&$0)
      }
      let world = single(queue: Microseconds(queue) * millisecond, path: path, seconds: 60, seed: seed, controller)
      let flow = world.flows[0]
      let frames = flow.receiver.inTime + flow.receiver.late + flow.receiver.overdue(at: world.now)
      return [
        .higher("top share", flow.topShare(10 * second..<60 * second), tolerance: 0.02),
        .higher("frames in 400 ms", Double(flow.receiver.inTime) / Double(max(1, frames)), tolerance: 0.005),
        .lower(
          "sent ÷ media",
          Double(flow.log.mediaBytes + flow.log.copyBytes + flow.log.paddingBytes) / Double(flow.log.mediaBytes),
          tolerance: 0.05),
        .lower("queue p95 ms", world.queuePercentile(0.95, 10 * second..<60 * second), tolerance: 10),
      ]
    }
  }

  private static var losses: [Scenario] {
    [2, 5, 10, 20].map { loss in steady("5 loss \(loss) %, RTT 50") { $0.loss = Double(loss) / 100 } }
      + [steady("6 loss 10 %, RTT 150", roundTrip: 150) { $0.loss = 0.1 }]
  }

  private static func bursts(_ share: Double) -> Scenario {
    steady("7 bursts of 8, \(Int(share * 100)) %") { $0.burstLoss = share }
  }

  private static var jitter: Scenario {
    steady("8 jitter ±30 ms, 5 % reordered") {
      $0.jitter = 30 * millisecond
      $0.reordering = 0.05
    }
  }

  // MARK: Several

  private static var shared: [Scenario] {
    [
      ("9 ten flows, 8 Mbit/s, RTT 50", 8_000_000, [50]),
      ("9 ten flows, 8 Mbit/s, RTT 30–300", 8_000_000, [30, 60, 90, 120, 150, 180, 210, 240, 270, 300]),
      ("9 ten flows, 4 Mbit/s, RTT 50", 4_000_000, [50]),
    ].map { (name: String, capacity: Int, roundTrips: [Int]) in
      Scenario(name: name) { seed, controller in
        let paths = (0..<10).map { i in
          PathModel { $0.roundTrip = Microseconds(roundTrips[i % roundTrips.count]) * millisecond }
        }
        let world = World(
          schedule: [(0, capacity)], limit: 300 * millisecond, paths: paths, seed: seed, controller: controller)
        world.run(until: 80 * second)
        let time = 20 * second..<80 * second
        let rates = world.flows.map { Double($0.log.rate(time)) }
        let sum = rates.reduce(0, +)
        let jain = sum * sum / (10 * rates.reduce(0) { $0 + $1 * $1 })
        return [
          .higher("Jain", jain, tolerance: 0.02),
          .higher("use", sum / Double(capacity), tolerance: 0.02),
          .lower(
            "spatial switches a minute", Double(world.flows.reduce(0) { $0 + $1.log.spatialChanges }) / 10 / 80 * 60,
            tolerance: 0.5),
          .lower("queue p95 ms", world.queuePercentile(0.95, time), tolerance: 10),
        ]
      }
    }
  }

  private static var cubic: Scenario {
    Scenario(name: "10 against Cubic, 2 Mbit/s, queue 200") { seed, controller in
      let tcp = CubicFlow(roundTrip: 50 * millisecond)
      let world = World(
        schedule: [(0, 2_000_000)], limit: 200 * millisecond, paths: [PathModel()], cubic: tcp, seed: seed,
        controller: controller)
      world.run(until: 80 * second)
      let time = 10 * second..<80 * second
      let ours = Double(world.flows[0].log.rate(time))
      let theirs = Double(tcp.rate(time))
      let share = ours / (ours + theirs)
      var longest = 0
      var run = 0
      for step in world.flows[0].log.steps[1_000...] {
        run = step < 0 ? run + 1 : 0
        longest = max(longest, run)
      }
      return [
        .lower("distance of the share from 50 %", abs(share - 0.5), tolerance: 0.05),
        .lower("longest without video s", Double(longest) / 100, tolerance: 0.3),
      ]
    }
  }

  // MARK: Feedback

  private static var feedback: [Scenario] {
    [
      Scenario(name: "11 half of the reports lost") { seed, controller in
        let world = single(path: PathModel { $0.feedbackLoss = 0.5 }, seconds: 40, seed: seed, controller)
        return [
          .higher("top share", world.flows[0].topShare(5 * second..<40 * second), tolerance: 0.02),
          .lower("queue p95 ms", world.queuePercentile(0.95, 5 * second..<40 * second), tolerance: 10),
        ]
      },
      Scenario(name: "11 no report for 3 s") { seed, controller in
        let world = single(
          path: PathModel { $0.feedbackOutage = 20 * second..<23 * second }, seconds: 50, seed: seed, controller)
        let flow = world.flows[0]
        let silent = flow.log.targets[2_200]
        return [
          .lower("kbit/s after 2 s", Double(silent) / 1_000, tolerance: 20),
          .lower("back after s", flow.seconds(until: Flow.top, in: 23 * second..<45 * second), tolerance: 0.3),
        ]
      },
      Scenario(name: "11 reports 1 s late") { seed, controller in
        let world = single(
          path: PathModel { $0.feedbackDelay = (20 * second, second) }, seconds: 60, seed: seed, controller)
        return [
          .higher("top share", world.flows[0].topShare(22 * second..<60 * second), tolerance: 0.02),
          .lower("queue p95 ms", world.queuePercentile(0.95, 20 * second..<60 * second), tolerance: 10),
        ]
      },
    ]
  }

  private static var starvation: Scenario {
    Scenario(name: "16 50 kbit/s for 60 s, then 2 Mbit/s") { seed, controller in
      let world = single(
        [(0, 2_000_000), (10 * second, 50_000), (70 * second, 2_000_000)], path: PathModel(), seconds: 100, seed: seed,
        controller)
      return [
        .lower("video back after s", world.flows[0].seconds(until: 0, in: 70 * second..<98 * second), tolerance: 0.3)
      ]
    }
  }

  private static var policer: Scenario {
    Scenario(name: "17 policer of 1 Mbit/s, 30 ms") { seed, controller in
      let world = single(
        [(0, 1_000_000)], queue: 30 * millisecond, path: PathModel(), seconds: 60, seed: seed, controller)
      let flow = world.flows[0]
      let frames = flow.receiver.inTime + flow.receiver.late + flow.receiver.overdue(at: world.now)
      return [
        .higher("frames in 400 ms", Double(flow.receiver.inTime) / Double(max(1, frames)), tolerance: 0.005),
        .higher("kbit/s", Double(flow.log.rate(10 * second..<60 * second)) / 1_000, tolerance: 20),
      ]
    }
  }
}

import CongestionControl

/// Flows over one bottleneck, in steps of a millisecond of virtual time.
final class World {
  let bottleneck: Bottleneck
  let flows: [Flow]
  let cubic: CubicFlow?
  /// The queue's delay every 10 ms.
  private(set) var queue: [Microseconds] = []
  private(set) var now: Microseconds = 0

  init(
    schedule: [(from: Microseconds, rate: Int)], limit: Microseconds, paths: [PathModel], cubic: CubicFlow? = nil,
    seed: UInt64, controller: () -> any RateController
  ) {
    bottleneck = Bottleneck(schedule: schedule, limit: limit)
    flows = paths.indices.map { Flow(index: $0, controller: controller(), path: paths[$0], seed: seed) }
    self.cubic = cubic
  }

  func run(until end: Microseconds) {
    while now < end {
      for flow in flows { flow.advance(to: now, bottleneck: bottleneck) }
      cubic?.advance(to: now, bottleneck: bottleneck)
      bottleneck.drain(until: now) { packet, time in
        if packet.flow < 0 {
          cubic?.forwarded(packet, at: time)
        } else {
          flows[packet.flow].forwarded(packet, at: time)
        }
      }
      if now % (10 * millisecond) == 0 { queue.append(bottleneck.delay(at: now)) }
      now += millisecond
    }
  }

  /// In ms, of the samples in an interval.
  func queuePercentile(_ share: Double, _ time: Range<Microseconds>) -> Double {
    let samples = queue[Int(time.lowerBound / (10 * millisecond))..<Int(time.upperBound / (10 * millisecond))].sorted()
    return Double(samples[Int(Double(samples.count - 1) * share)]) / 1_000
  }
}

extension Flow {
  static let top = VideoSource.steps.count - 1

  private func samples(_ time: Range<Microseconds>) -> ArraySlice<Int> {
    log.steps[Int(time.lowerBound / (10 * millisecond))..<Int(time.upperBound / (10 * millisecond))]
  }

  /// The share of an interval at the top step, 0...1.
  func topShare(_ time: Range<Microseconds>) -> Double {
    let samples = samples(time)
    return Double(samples.count { $0 == Self.top }) / Double(samples.count)
  }

  /// Seconds from the start of `time` until the step is at least `step` for the next 2 s; the whole time if it never
  /// is.
  func seconds(until step: Int, in time: Range<Microseconds>) -> Double {
    let samples = samples(time)
    var run = 0
    for (i, sample) in samples.enumerated() {
      run = sample >= step ? run + 1 : 0
      if run == 200 { return Double(i - 199) / 100 }
    }
    return Double(samples.count) / 100
  }

  /// Seconds until the rate of the step with audio fits into `rate` for the next 2 s.
  func seconds(untilBelow rate: Int, in time: Range<Microseconds>) -> Double {
    let samples = samples(time)
    var run = 0
    for (i, sample) in samples.enumerated() {
      let used = Flow.audioRate + (sample >= 0 ? VideoSource.steps[sample].rate : 0)
      run = used <= rate ? run + 1 : 0
      if run == 200 { return Double(i - 199) / 100 }
    }
    return Double(samples.count) / 100
  }
}

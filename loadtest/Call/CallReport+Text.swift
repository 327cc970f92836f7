import Foundation

/// For people.
extension CallReport {
  var text: String {
    var lines = [
      "joined            \(joined) of \(invited) in \(plan.calls) call\(plan.calls == 1 ? "" : "s")",
      "join time         \(Self.times(joinTimes))\(ownJoins == nil ? "" : "  (its own)")",
    ]
    if let measurement {
      lines.append(
        String(
          format: "packets           %llu of %llu received, loss %.5f %%", measurement.delivery.received,
          measurement.delivery.expected, measurement.delivery.loss * 100))
      if plan.impairment != nil {
        lines.append(
          """
          impaired          \(outcome.tally.impaired) datagrams dropped on this side (seed \(plan.seed)); \
          between good paths \(measurement.undisturbed.expected - measurement.undisturbed.received) \
          of \(measurement.undisturbed.expected) packets lost
          """)
      }
    }
    let tally = outcome.tally
    lines.append("frames            \(tally.frames) decrypted, \(tally.decryptFailures) failed")
    if let measurement {
      lines.append("one-way latency   \(Self.times(measurement.latency))\(ownLatency == nil ? "" : "  (its own)")")
      if plan.videoKbps != nil {
        lines.append(
          String(
            format: "audio alone       %@, loss %.5f %%", Self.times(measurement.audioLatency),
            measurement.audio.loss * 100))
      }
    }
    if plan.isLayered, let layers = measurement?.layers {
      let shares = zip(CameraLayer.all, layers.decodable).map { layer, count in
        String(format: "%@ %.1f %%", layer.rid, 100 * Double(count) / Double(max(1, layers.total)))
      }
      lines.append(
        String(
          format: "layers            %@ of the frames, %llu not decodable, %llu switches, longest freeze %.0f ms",
          shares.joined(separator: ", "), layers.undecodable, layers.switches, Double(layers.longestGap) / 1e6))
    }
    lines.append(
      "retransmission    \(tally.nacked) asked for, \(tally.retransmitted) came, \(tally.abandoned) given up")
    if let returns {
      lines.append("gaps              \(returns.gapCount), \(Self.times(returns.gaps)), \(returns.away) not back")
    }
    if tally.socketDrops > 0 { lines.append("lost on this side \(tally.socketDrops) datagrams, for lack of buffer") }
    if let server = measurement?.server {
      lines.append(
        String(
          format: "server            %.2f µs CPU a forwarded packet at %.0f packets/s (%.0f %% of a core)",
          server.cpuMicrosPerPacket, server.packetsPerSecond, server.cpuShare * 100))
      lines.append(
        String(
          format: "server memory     %.1f MiB, %.0f KiB a participant", Double(server.rssBytes) / 1_048_576,
          Double(server.addedBytes) / 1024 / Double(max(1, invited))))
    }
    if let own = measurement?.own {
      lines.append(
        String(
          format:
            "load test         %.0f %% of a core, its busiest media thread %.0f %%, 99 %% of its timers within %.1f ms",
          own.cpu * 100, own.busiestThread * 100, own.lateness.milliseconds(atShare: 0.99)))
    }
    lines += outcome.steps.map(Self.line)
    if !outcome.steps.isEmpty {
      lines.append("last good step    \(lastGoodStep.map { "\($0.participants) participants" } ?? "none")")
    }
    lines += outcome.costs.map { $0.text(participants: plan.participants) }
    lines += notes.map { "note              \($0)" }
    return lines.joined(separator: "\n")
  }

  /// Why the load test itself determined the latency; nil when it did not.
  var ownLatency: String? { measurement?.own.bottleneck }

  /// Why the load test itself determined the join times; nil when it did not.
  var ownJoins: String? { outcome.joining?.bottleneck }

  /// Remarks on the figures.
  var notes: [String] {
    var notes: [String] = []
    if let ownLatency { notes.append("the load test was the bottleneck, and the latency is its own: \(ownLatency)") }
    if let ownJoins { notes.append("the load test was the bottleneck while participants joined: \(ownJoins)") }
    if outcome.tally.impairedWithoutRoom > 0 {
      notes.append(
        "\(outcome.tally.impairedWithoutRoom) impaired datagrams had no room in memory: impair fewer, or shorten the delay"
      )
    }
    if let phase = outcome.interruption { notes.append("interrupted: \(phase)") }
    if !outcome.steps.isEmpty, outcome.steps.allSatisfy({ $0.limit == nil }), outcome.interruption == nil {
      notes.append("no step passed a limit: raise --participants or --step")
    }
    if case .ramp = plan.course { notes += failures }
    return notes
  }

  private static func line(_ step: RampStep) -> String {
    let measured = step.measurement
    let cpu = measured.server.map { String(format: "  server %.0f %%", $0.cpuShare * 100) } ?? ""
    let head = "step of \(step.participants)"
    return head + String(repeating: " ", count: max(1, 18 - head.count))
      + String(
        format: "%.0f packets/s  loss %.3f %%  p50 %.1f  p99 %.1f ms%@  %@", measured.packetsPerSecond,
        measured.delivery.loss * 100, measured.latency.milliseconds(atShare: 0.5),
        measured.latency.milliseconds(atShare: 0.99), cpu, step.limit ?? "good")
      + (measured.own.bottleneck == nil ? "" : "  (the load test was the bottleneck)")
  }

  static func times(_ histogram: LatencyHistogram) -> String {
    String(
      format: "p50 %.1f   p90 %.1f   p99 %.1f   max %.1f ms", histogram.milliseconds(atShare: 0.5),
      histogram.milliseconds(atShare: 0.9), histogram.milliseconds(atShare: 0.99), histogram.maximumMilliseconds)
  }
}

/// The report with plots.
extension CallReport {
  func page(_ verdict: Verdict) -> Page? {
    var facts = [Page.Fact(name: "Joined", value: "\(joined) of \(invited)")]
    for metric in [
      Metric.loss, .p50, .p99, .max, .undecodable, .freeze, .packets, .joinP99, .rejoinP99, .cpu, .cpuPerPacket,
      .memory, .ownCPU,
    ] {
      if let value = figure(metric) { facts.append(Page.Fact(name: metric.title, value: metric.text(value))) }
    }
    if let step = lastGoodStep { facts.append(Page.Fact(name: "Last good step", value: "\(step.participants)")) }
    return Page(
      title: "Load test: \(plan.scenario.rawValue)", subtitle: subtitle, isOK: verdict.isOK,
      notes: verdict.faults + notes, facts: facts, text: text + "\n" + verdict.text,
      charts: Chart.all(
        outcome.samples, latency: measurement?.latency ?? LatencyHistogram(), joins: joinTimes) + stepCharts)
  }

  private var subtitle: String {
    let video = plan.videoKbps.map { "audio and \($0) kbit/s of video" } ?? "audio"
    return """
      \(plan.calls) call\(plan.calls == 1 ? "" : "s") of \(plan.participants), \(plan.publishers) of whom send \(video); \
      \(String(format: "%.0f", measurement?.seconds ?? 0)) s measured
      """
  }

  private var stepCharts: [Chart] {
    guard !outcome.steps.isEmpty else { return [] }
    let line = { (name: String, value: (Measurement) -> Double) in
      Chart.Line(name: name, points: outcome.steps.map { (Double($0.participants), value($0.measurement)) })
    }
    return [
      Chart(
        title: "Latency by step", unit: "ms",
        content: .lines(
          [
            line("p50") { $0.latency.milliseconds(atShare: 0.5) },
            line("p99") { $0.latency.milliseconds(atShare: 0.99) },
          ], xUnit: "participants")),
      Chart(
        title: "Packets by step", unit: "packets/s",
        content: .lines([line("packets") { $0.packetsPerSecond }], xUnit: "participants")),
    ]
  }
}

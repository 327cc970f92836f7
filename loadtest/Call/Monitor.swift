import Foundation
import LinuxIO
import MediaModel
import Synchronization

/// Watches a test with calls: records its figures each second, and shows them in a terminal.
final class Monitor: Sendable {
  private let plan: CallPlan
  private let loops: [MediaLoop]
  private let participants: [SimulatedParticipant]
  private let line = ProgressLine()
  private let start = MonotonicClock.now().nanoseconds
  private let state: Mutex<State>

  private struct State {
    var phase = "signing in"
    var samples: [Sample] = []
    var last: Reading
  }

  private static let interval = Duration.seconds(1)
  /// More than a day; later seconds are not kept.
  private static let sampleLimit = 100_000

  init(_ plan: CallPlan, loops: [MediaLoop], participants: [SimulatedParticipant]) {
    self.plan = plan
    self.loops = loops
    self.participants = participants
    state = Mutex(State(last: Self.read(plan, loops, participants)))
  }

  var samples: [Sample] { state.withLock(\.samples) }

  var phase: String { state.withLock(\.phase) }

  /// The next samples belong to this phase of the test.
  func enter(_ phase: String) {
    state.withLock { $0.phase = phase }
    show()
  }

  /// Runs until it is cancelled.
  func run() async {
    var due = MonotonicClock.now()
    while !Task.isCancelled {
      due = max(MonotonicClock.now(), due.advanced(by: Self.interval))
      guard (try? await Task.sleep(for: MonotonicClock.now().duration(to: due))) != nil else { break }
      let reading = reading()
      state.withLock { state in
        let sample = reading.sample(since: state.last, start: start, phase: state.phase)
        state.last = reading
        if state.samples.count < Self.sampleLimit { state.samples.append(sample) }
      }
      show()
    }
    line.finish()
  }

  func reading() -> Reading { Self.read(plan, loops, participants) }

  private static func read(_ plan: CallPlan, _ loops: [MediaLoop], _ participants: [SimulatedParticipant]) -> Reading {
    let server = plan.serverProcess.flatMap { ProcessUsage(of: $0) }
    return Reading(
      nanoseconds: MonotonicClock.now().nanoseconds, threads: loops.map(\.publication),
      joined: participants.count { $0.joinTime != nil }, ownCPU: ProcessUsage()?.cpuNanoseconds ?? 0,
      serverCPU: server?.cpuNanoseconds, serverMemory: server?.residentBytes)
  }

  private func show() {
    let (phase, sample) = state.withLock { ($0.phase, $0.samples.last ?? Sample()) }
    line.show(sample.line(phase: phase, of: plan.total))
  }
}

extension Sample {
  /// For a terminal, in one line.
  func line(phase: String, of total: Int) -> String {
    var words = [
      String(format: "%.0f s", seconds), phase, "\(joined)/\(total) joined",
      String(format: "%.0f packets/s", packetsPerSecond),
    ]
    if let p99Ms { words.append(String(format: "p99 %.1f ms", p99Ms)) }
    words.append(String(format: "loss %.2f %%", loss * 100))
    if let serverCPU, let serverMemory {
      words.append(String(format: "server %.0f %% %.0f MiB", serverCPU * 100, serverMemory / 1_048_576))
    }
    return words.joined(separator: "  ")
  }
}

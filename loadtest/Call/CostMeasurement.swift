import ConclaveClient
import LinuxIO
import MediaModel
import Transport

/// Measures what changes of a call cost beyond its media: a leave and a join of the last participant, a mute of the
/// first one, and a key rotation.
struct CostMeasurement {
  let plan: CallPlan
  /// The time for which each change is measured.
  let window: Duration
  let call: JoinedCall
  /// At least three.
  let members: ArraySlice<SimulatedParticipant>
  let certificate: DTLSCertificate
  let monitor: Monitor

  private static let keyDeadline = Duration.seconds(30)
  private let pollInterval = Duration.milliseconds(20)

  /// - Parameter loop: the media loop of the last participant, who leaves and joins again.
  func perform(rejoiningOn loop: MediaLoop) async -> [ChangeCost] {
    guard let first = members.first, let last = members.last, let track = first.tracks.first else { return [] }
    // Confirmations of the joins' keys arrive for this long.
    try? await Task.sleep(for: .seconds(10) + .milliseconds(10 * members.count))
    let idle = await use("nothing") {}
    var changes = [await use("leave") { try await last.leave(call.id) }]
    changes.append(
      await use("join") { try await last.join(call.id, link: nil, on: loop, certificate: certificate) })
    changes.append(
      await use("mute and unmute") {
        // One right after the other, so that the media does not change.
        for muted in [true, false] {
          try await call.setMuted(muted, track: "\(track.participant).\(track.track)")
        }
      })
    if let minutes = plan.rotateMinutes {
      // The server measures the time from its own switch, a moment before the clients'.
      await waitUntilKeyIsOld(.seconds(60 * minutes - 2))
      changes.append(await use("rotation") { try await nextKey() })
    }
    return changes.map { $0.cost.without(idle.cost, share: $0.seconds / idle.seconds) }
  }

  private func use(_ change: String, _ body: () async throws -> Void) async -> (cost: ChangeCost, seconds: Double) {
    monitor.enter("measuring: \(change)")
    let before = UsageReading(server: plan.serverProcess)
    do {
      try await body()
    } catch {
      members.last?.fail("\(change): \(error)")
    }
    try? await Task.sleep(for: window)
    let after = UsageReading(server: plan.serverProcess)
    return (after.cost(of: change, since: before), after.seconds(since: before))
  }

  /// Only the first participant is asked: asking a thousand would add to the cost.
  private var lastKey: Instant? { members.first?.lastKey }

  private func waitUntilKeyIsOld(_ age: Duration) async {
    while let last = lastKey, last.advanced(by: age) > MonotonicClock.now() {
      try? await Task.sleep(for: pollInterval)
    }
  }

  private func nextKey() async throws {
    let before = lastKey
    let deadline = MonotonicClock.now().advanced(by: Self.keyDeadline)
    while lastKey == before {
      guard MonotonicClock.now() < deadline else {
        throw TokenSource.Failure(description: "no new key came in \(Self.keyDeadline)")
      }
      try? await Task.sleep(for: pollInterval)
    }
  }
}

import Foundation
import LinuxIO
import MediaModel
import Synchronization

/// A server that dies during the call.
extension SimulatedParticipant {
  /// A line on standard output.
  private struct Line: Encodable {
    var step: String
    /// The participant's index in the load test, from 0.
    var participant: Int
    /// The server's number of the participant, if it has one.
    var number: UInt32?
    /// Seconds of the monotonic clock that all programs of the machine share.
    var at: Double
    /// The time without the others' media.
    var gap: Double?
  }

  func noteLoss() {
    guard plan.outages else { return }
    let now = MonotonicClock.now()
    moments.withLock {
      $0.isAway = true
      $0.isRejoining = false
      $0.losses += 1
      $0.absences.lost(at: now)
    }
    say("lost", at: now)
  }

  /// A server that only stood still has kept the stay, and media goes on: no event of a rejoin arrives within this
  /// time.
  func noteReconnection() {
    guard plan.outages, moments.withLock(\.losses) > 0 else { return }
    let losses = moments.withLock(\.losses)
    Task {
      try? await Task.sleep(for: .seconds(2))
      moments.withLock {
        if $0.losses == losses, !$0.isRejoining { $0.isAway = false }
      }
    }
  }

  func noteRejoin() { say("rejoined", at: MonotonicClock.now()) }

  /// Notes that the participant is back if it hears all `tracks` of the call that are not its own.
  func noteReturn(hearing tracks: Set<TrackKey>) {
    let before = moments.withLock { $0 }
    guard !before.isAway, !before.absences.isBack,
      tracks.subtracting(before.tracks).isSubset(of: before.progress.state.heard)
    else { return }
    let now = MonotonicClock.now()
    before.progress.arrived(at: now)
    let gap = moments.withLock { $0.absences.back(at: now) }
    say("back", at: now, gap: gap)
  }

  private func say(_ step: String, at now: Instant, gap: Duration? = nil) {
    guard plan.outages else { return }
    let line = Line(
      step: step, participant: index, number: moments.withLock(\.number), at: Double(now.nanoseconds) / 1e9,
      gap: gap?.seconds)
    guard let data = try? JSONEncoder().encode(line) else { return }
    FileHandle.standardOutput.write(data + Data("\n".utf8))
  }
}

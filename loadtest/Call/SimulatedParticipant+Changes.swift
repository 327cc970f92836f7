import ConclaveClient
import LinuxIO
import MediaModel
import Synchronization
import Transport

/// Leaving and coming back in the course of a test.
extension SimulatedParticipant {
  /// False when it is not in its call, or already on its way out and in.
  func beginChange() -> Bool {
    moments.withLock { moments in
      guard moments.joinTime != nil, !moments.isChanging else { return false }
      moments.isChanging = true
      return true
    }
  }

  func endChange() { moments.withLock { $0.isChanging = false } }

  /// As a person who comes back: the news that it left reaches it before it joins.
  private static let absence = Duration.seconds(1)

  /// Leaves the call and joins it again, with a media connection of its own.
  func leaveAndJoin(_ call: String, on loop: MediaLoop, certificate: DTLSCertificate) async throws {
    try await leave(call)
    loop.submit(.silence(index))
    try await Task.sleep(for: Self.absence)
    try await join(call, link: nil, on: loop, certificate: certificate)
  }

  /// Loses its connection and its media path at once, as in a network that goes away, and comes back like an app that is started again.
  func loseAndRejoin(_ call: String, on loop: MediaLoop, certificate: DTLSCertificate) async throws {
    loop.submit(.silence(index))
    let now = MonotonicClock.now()
    moments.withLock { moments in
      moments.leave(for: PeerProgress(isArriving: true))
      moments.absences.lost(at: now)
    }
    await client?.lose(call)
    try await rejoin(call, on: loop, certificate: certificate)
  }
}

import ConclaveClient
import LinuxIO
import MediaModel
import Synchronization
import Transport

/// Leaving and coming back during a test.
extension SimulatedParticipant {
  /// Returns false if it is not in its call, or is already leaving and joining.
  func beginChange() -> Bool {
    moments.withLock { moments in
      guard moments.joinTime != nil, !moments.isChanging else { return false }
      moments.isChanging = true
      return true
    }
  }

  func endChange() { moments.withLock { $0.isChanging = false } }

  /// As long as a person would take: the event about its leave reaches it before it joins.
  private static let absence = Duration.seconds(1)

  /// Leaves the call and joins it again, with a new media connection.
  func leaveAndJoin(_ call: String, on loop: MediaLoop, certificate: DTLSCertificate) async throws {
    try await leave(call)
    loop.submit(.silence(index))
    try await Task.sleep(for: Self.absence)
    try await join(call, link: nil, on: loop, certificate: certificate)
  }

  /// Loses its connection and its media path at once, as when a network disappears, and comes back like an app that is
  /// restarted.
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

import MediaModel
import Synchronization

/// What the media thread lets the rest of the program know of a peer while it runs.
final class PeerProgress: Sendable {
  struct State: Sendable {
    /// ICE and DTLS are up.
    var connectedAt: Instant?
    /// Why they never will be.
    var failure: String?
    /// Tracks of which a frame has opened.
    var heard: Set<TrackKey> = []
  }

  private let guarded = Mutex(State())

  var state: State { guarded.withLock { $0 } }

  func connected(at now: Instant) { guarded.withLock { $0.connectedAt = $0.connectedAt ?? now } }
  func failed(_ reason: String) { guarded.withLock { $0.failure = reason } }
  func heard(_ track: TrackKey) { guarded.withLock { _ = $0.heard.insert(track) } }
}

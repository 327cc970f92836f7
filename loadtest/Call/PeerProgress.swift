import MediaModel
import Synchronization

/// The state of a peer that its media thread publishes to the rest of the program.
final class PeerProgress: Sendable {
  struct State: Sendable {
    /// ICE and DTLS are up.
    var connectedAt: Instant?
    /// Why they never will be.
    var failure: String?
    /// Tracks of which a frame has opened.
    var heard: Set<TrackKey> = []
    /// Since when it hears all the others: frames that came earlier may be of epochs from before its stay.
    var arrivedAt: Instant
    /// Frames that opened and that did not, when the stay is over.
    var count = StayCount()
  }

  private let guarded: Mutex<State>

  init(isArriving: Bool = false) { guarded = Mutex(State(arrivedAt: Instant(nanoseconds: isArriving ? .max : 0))) }

  var state: State { guarded.withLock { $0 } }

  func connected(at now: Instant) { guarded.withLock { $0.connectedAt = $0.connectedAt ?? now } }
  func failed(_ reason: String) { guarded.withLock { $0.failure = reason } }
  func arrived(at now: Instant) { guarded.withLock { $0.arrivedAt = now } }
  func ended(_ count: StayCount) { guarded.withLock { $0.count = count } }
  func heard(_ track: TrackKey) { guarded.withLock { _ = $0.heard.insert(track) } }
}

/// The counts of the others' frames during one connection of a participant.
struct StayCount: Sendable, Hashable {
  var opened: UInt64 = 0
  var refused: UInt64 = 0
}

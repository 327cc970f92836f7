import LinuxIO
import MediaModel
import Synchronization

/// Collects a media plane's events for tests.
final class EventLog: Sendable {
  private let events = Mutex<[MediaEvent]>([])

  func append(_ event: MediaEvent) { events.withLock { $0.append(event) } }

  var all: [MediaEvent] { events.withLock { $0 } }

  var configured: [UInt64] {
    all.compactMap { if case .configured(_, let request, _) = $0 { request } else { nil } }
  }

  /// How many of the peer's slots have a track, by its newest map.
  func filledSlots(of peer: PeerID) -> Int {
    all.reduce(0) { count, event in
      switch event {
      case .configured(peer, _, let map), .slots(peer, let map): map.slots.count
      default: count
      }
    }
  }

  var connected: [PeerID] { all.compactMap { if case .connected(let peer) = $0 { peer } else { nil } } }
}

/// Waits for a condition that another thread makes true, at most a minute, for busy machines; `step` may itself wait.
func eventually(_ condition: () -> Bool, step: () -> Void = { MonotonicClock.sleep(nanoseconds: 200_000) }) -> Bool {
  let end = MonotonicClock.now().advanced(by: .seconds(60))
  while !condition() {
    guard MonotonicClock.now() < end else { return false }
    step()
  }
  return true
}

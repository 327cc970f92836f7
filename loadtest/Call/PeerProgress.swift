import MediaModel
import Synchronization

/// The state of a peer that its media thread publishes to the rest of the program.
final class PeerProgress: Sendable {
  struct State: Sendable {
    /// When ICE and DTLS were up.
    var connectedAt: Instant?
    /// Why the connection failed for good.
    var failure: String?
    /// The tracks of which a frame has opened.
    var heard: Set<TrackKey> = []
    /// When it began to hear all the others: earlier frames may be of epochs from before its stay.
    var arrivedAt: Instant
    /// The numbers of frames that opened and that did not; set at the end of the stay.
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

/// How many frames of the others one connection of a participant opened and refused.
struct StayCount: Sendable, Hashable {
  private(set) var opened: UInt64 = 0
  /// The opened frames of each epoch.
  private(set) var epochs: [Epoch] = []
  var refused: UInt64 = 0

  struct Epoch: Sendable, Hashable {
    let number: UInt32
    var opened: UInt64
  }

  mutating func open(_ count: UInt64 = 1, under epoch: UInt32) {
    opened += count
    if let place = epochs.lastIndex(where: { $0.number == epoch }) {
      epochs[place].opened += count
    } else {
      epochs.append(Epoch(number: epoch, opened: count))
    }
  }

  mutating func merge(_ other: StayCount) {
    for epoch in other.epochs { open(epoch.opened, under: epoch.number) }
    refused += other.refused
  }
}

package import MediaModel

/// The way from one worker's SFU to the other ends of its calls' tracks.
package protocol Relay: AnyObject {
  /// Sends a message, in order.
  /// - Parameters:
  ///   - packet: header and payload of `.packet`, else empty. Its bytes are copied.
  /// - Returns: false when there is no room, or no way to that end.
  func send(_ message: RelayMessage, _ packet: UnsafeRawBufferPointer, to end: RelayEnd) -> Bool
}

/// A message about one encoding of a peer: from the worker that has the peer, or to it.
package struct RelayMessage: Sendable, BitwiseCopyable {
  package enum Body: Sendable, BitwiseCopyable {
    /// A decrypted packet that arrived for the first time, and that names the track's own key ID if that is required.
    /// - Parameters:
    ///   - index: its unwrapped sequence number.
    ///   - restarts: rises when the sender continues under another SSRC, and `index` starts again.
    case packet(index: UInt64, isRetransmission: Bool, restarts: UInt32)
    /// A sender report (RFC 3550 section 6.4.1), when it arrived, and the offset from the sender's clock to ours in
    /// nanoseconds.
    case report(ntp: UInt64, rtp: UInt32, at: UInt64, clockOffset: UInt64)
    case wish(RelayWish)
    /// A receiver needs a key frame.
    case keyFrame
  }

  package var peer: PeerID
  package var track: TrackID
  /// The encoding's index among the track's layers.
  package var rank: UInt8
  package var body: Body

  package init(peer: PeerID, track: TrackID, rank: UInt8, body: Body) {
    self.peer = peer
    self.track = track
    self.rank = rank
    self.body = body
  }
}

/// A worker's wish for an encoding of a peer of another worker.
package enum RelayWish: UInt8, Sendable, BitwiseCopyable {
  case nothing
  /// Its packets, if it is encoded: another layer of its track is shown, and this one may follow.
  case packets
  /// Its packets, and that the sender encodes it.
  case wanted
}

/// When the wishes for a remote peer's tracks are repeated: one is lost when the ring is full.
struct WishReminder {
  private static let first = Duration.milliseconds(20)
  private static let longest = Duration.seconds(1)

  private var interval = WishReminder.first
  private(set) var deadline: Instant?

  init() {}

  init(from now: Instant) { deadline = now }

  mutating func isDue(_ now: Instant) -> Bool {
    guard let due = deadline, due <= now else { return false }
    deadline = now.advanced(by: interval)
    interval = min(interval * 2, Self.longest)
    return true
  }
}

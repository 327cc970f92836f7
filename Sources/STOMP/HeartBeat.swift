/// One side's `heart-beat` header: how often it can send and how often it wants to receive, in milliseconds; 0 for
/// never.
package struct HeartBeat: Equatable, Sendable {
  package var sends: Int
  package var wants: Int

  package init(sends: Int, wants: Int) {
    self.sends = sends
    self.wants = wants
  }

  /// Reads the header's value; a missing header is `0,0`. nil unless it consists of two numbers.
  package init?(header: String?) {
    guard let header else {
      self.init(sends: 0, wants: 0)
      return
    }
    let parts = header.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, let sends = decimal(parts[0].trimmingBlanks), let wants = decimal(parts[1].trimmingBlanks)
    else { return nil }
    // A day is as good as forever, and keeps the sums below far from overflow.
    self.init(sends: min(sends, 86_400_000), wants: min(wants, 86_400_000))
  }

  package var header: String { "\(sends),\(wants)" }

  /// The agreed intervals of the connection, seen from this side.
  package func agreed(with peer: HeartBeat) -> HeartBeatTimers {
    func interval(_ sender: Int, _ receiver: Int) -> UInt64? {
      sender == 0 || receiver == 0 ? nil : UInt64(max(sender, receiver)) * 1_000_000
    }
    return HeartBeatTimers(sending: interval(sends, peer.wants), receiving: interval(peer.sends, wants))
  }
}

/// The heart-beats agreed for a connection and when each is due, in nanoseconds of the caller's clock.
package struct HeartBeatTimers: Equatable, Sendable {
  /// How often something must be written; nil for never.
  package let sending: UInt64?
  /// How often something must arrive; nil for never.
  package let receiving: UInt64?
  private var written: UInt64 = 0
  private var received: UInt64 = 0

  init(sending: UInt64?, receiving: UInt64?) {
    self.sending = sending
    self.receiving = receiving
  }

  package mutating func start(now: UInt64) {
    written = now
    received = now
  }

  /// Anything was written.
  package mutating func wrote(now: UInt64) { written = now }

  /// An octet arrived, whether or not the frame is complete.
  package mutating func received(now: UInt64) { received = now }

  /// When to write a heart-beat, a fifth of the interval early, so that it arrives in time.
  package var beatDue: UInt64? { sending.map { written + $0 - $0 / 5 } }

  /// When the peer counts as gone. The margin is the interval again, but at most 9 s: a peer that promised a beat every 10 s is gone
  /// within 20 s.
  package var peerDead: UInt64? { receiving.map { received + $0 + min($0, 9_000_000_000) } }
}

/// The heart-beats agreed for a connection and when each is due, in nanoseconds of the caller's clock.
package struct HeartBeatTimers: Equatable, Sendable {
  /// How often something must be written; nil is never.
  package let sending: UInt64?
  /// How often something must come; nil is never.
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

  /// Any octet came, whole frame or not.
  package mutating func received(now: UInt64) { received = now }

  /// When to write a heart-beat, a fifth of the interval early, so that it arrives in time.
  package var beatDue: UInt64? { sending.map { written + $0 - $0 / 5 } }

  /// When the peer counts as gone. The margin is the interval again, but 9 s at most: who promised a beat each 10 s is gone within 20 s.
  package var peerDead: UInt64? { receiving.map { received + $0 + min($0, 9_000_000_000) } }
}

import Connections

/// The part that one connection takes of the allowance that all connections of its user share. Services have no allowance and no limit.
struct ShareUse {
  private(set) var share: UserShare?
  private var subscriptions = 0
  /// Bytes of unfinished frames and open transactions, as last reported to the share.
  private var heldBytes = 0
  /// Frames since the share was last asked.
  private var frames = 0

  /// The client has logged in.
  mutating func begin(_ share: UserShare?) { self.share = share }

  /// Frames of any kind cost something, including those that no other rate counts.
  /// - Returns: how long the client has to wait, in ns.
  mutating func countFrame(now: UInt64) -> UInt64? {
    frames += 1
    guard frames == UserShare.frameBatch else { return nil }
    frames = 0
    return share?.readBatch(now: now)
  }

  /// Returns false if the user has too many subscriptions.
  mutating func subscribe() -> Bool {
    guard let share else { return true }
    guard share.subscribe() else { return false }
    subscriptions += 1
    return true
  }

  mutating func unsubscribe() {
    guard let share else { return }
    share.unsubscribe()
    subscriptions -= 1
  }

  /// Reports how many bytes of its client's frames the connection holds, if that has changed by a step.
  /// - Returns: false if the user's connections hold too many.
  mutating func hold(_ bytes: Int) -> Bool {
    guard let share, abs(bytes - heldBytes) >= Backlog.step || bytes == 0 && heldBytes > 0 else { return true }
    let more = bytes - heldBytes
    heldBytes = bytes
    return share.hold(more)
  }

  /// Gives back what the connection has taken.
  mutating func end() {
    share?.disconnect(subscriptions: subscriptions, inboundBytes: heldBytes)
    share = nil
  }
}

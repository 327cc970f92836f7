/// Frames whose key, or whose slot's new track, has not arrived (`FrameCipherError.unknownKey`, `.otherTrack`): kept for up to 1 s, at most 64 of a slot
/// (protocol section 5, epochs, rule 5).
///
/// Times are any clock's, in nanoseconds. Give it the frames that `FrameCipher.decrypt` could not decide on, and `take` them when a key or a slot map comes.
public struct WaitingFrames<Frame> {
  /// Nanoseconds that a frame is kept.
  public static var patience: UInt64 { 1_000_000_000 }
  /// Frames kept of one slot.
  public static var limit: Int { 64 }

  private var frames: [(since: UInt64, frame: Frame)] = []
  /// Frames that waited in vain, or had no room.
  public private(set) var dropped = 0

  /// For one slot.
  public init() {}

  /// Whether none waits.
  public var isEmpty: Bool { frames.isEmpty }

  /// Keeps a frame; of too many the oldest goes.
  public mutating func keep(_ frame: Frame, now: UInt64) {
    expire(now: now)
    if frames.count == Self.limit {
      frames.removeFirst()
      dropped += 1
    }
    frames.append((now, frame))
  }

  /// Takes out all that still count, in their order: those that still have no key are kept again with `keepAgain`.
  public mutating func take(now: UInt64) -> [(since: UInt64, frame: Frame)] {
    expire(now: now)
    defer { frames = [] }
    return frames
  }

  /// Puts back what `take` brought, with the time since which it waits.
  public mutating func keepAgain(_ waiting: (since: UInt64, frame: Frame)) { frames.append(waiting) }

  private mutating func expire(now: UInt64) {
    let count = frames.count
    frames.removeAll { $0.since + Self.patience <= now }
    dropped += count - frames.count
  }
}

extension WaitingFrames: Sendable where Frame: Sendable {}

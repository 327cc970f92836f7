/// Frames whose key, or whose slot's new track, has not arrived (`FrameCipherError.unknownKey`, `.otherTrack`): kept for up to 1 s, at most 64 of a slot
/// (protocol section 5, epochs, rule 5).
///
/// Times are nanoseconds of any clock. Give it the frames that `FrameCipher.decrypt` could not decide on, and `take` them when a key or a slot map arrives.
public struct WaitingFrames<Frame> {
  /// How many nanoseconds a frame is kept.
  public static var patience: UInt64 { 1_000_000_000 }
  /// How many frames of one slot are kept.
  public static var limit: Int { 64 }

  private var frames: [(since: UInt64, frame: Frame)] = []
  /// Frames that waited in vain, or had no room.
  public private(set) var dropped = 0

  /// For one slot.
  public init() {}

  /// Whether no frame waits.
  public var isEmpty: Bool { frames.isEmpty }

  /// Keeps a frame; above the limit the oldest is dropped.
  public mutating func keep(_ frame: Frame, now: UInt64) {
    expire(now: now)
    if frames.count == Self.limit {
      frames.removeFirst()
      dropped += 1
    }
    frames.append((now, frame))
  }

  /// Removes and returns all frames that still count, in order. Frames that still have no key are put back with
  /// `keepAgain`.
  public mutating func take(now: UInt64) -> [(since: UInt64, frame: Frame)] {
    expire(now: now)
    defer { frames = [] }
    return frames
  }

  /// Puts back frames from `take`, with the time since which each has waited.
  public mutating func keepAgain(_ waiting: (since: UInt64, frame: Frame)) { frames.append(waiting) }

  private mutating func expire(now: UInt64) {
    let count = frames.count
    frames.removeAll { $0.since + Self.patience <= now }
    dropped += count - frames.count
  }
}

extension WaitingFrames: Sendable where Frame: Sendable {}

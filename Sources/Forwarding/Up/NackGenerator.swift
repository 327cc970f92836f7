import MediaModel

/// Decides which holes of one stream are requested, and when: after the time that reordering takes, then after a little more than a round trip, each time a
/// quarter longer, until the packet is no longer of use.
struct NackGenerator {
  /// With more holes than this, a key frame is the better answer.
  static let capacity = 256
  /// A packet that arrives later than this is of no use to a receiver.
  static let longestWait = Duration.milliseconds(600)
  /// A packet that jumps further ahead than this opens no holes: the stream has started again.
  static let maximumGap: UInt64 = 200

  private struct Hole {
    var index: UInt64
    var opened: Instant
    var due: Instant
    /// The pause after the last request; zero before the first.
    var pause: Duration
  }

  /// Oldest first.
  private var holes = InlineArray<256, Hole>(
    repeating: Hole(index: 0, opened: Instant(nanoseconds: 0), due: Instant(nanoseconds: 0), pause: .zero))
  private(set) var count = 0
  /// The newest hole that was given up, until it is taken.
  private var givenUp: UInt64?
  /// When the first hole is due; nil if there is none.
  private(set) var deadline: Instant?
  private var tolerance = ReorderTolerance()

  /// The stream jumped from `highest` to `index`. Returns false if there are too many holes to mend: they are
  /// forgotten.
  mutating func jumped(from highest: UInt64, to index: UInt64, now: Instant) -> Bool {
    let missing = index &- highest &- 1
    // In range: the second sum is of small numbers, because of the first comparison.
    guard missing <= Self.maximumGap, count + Int(missing) <= Self.capacity else {
      count = 0
      deadline = nil
      return false
    }
    let due = now.advanced(by: tolerance.duration)
    for hole in highest &+ 1..<index {
      holes[count] = Hole(index: hole, opened: now, due: due, pause: .zero)
      count += 1
    }
    if missing > 0 { deadline = min(deadline ?? due, due) }
    return true
  }

  /// An older packet arrived after all, late or retransmitted.
  mutating func arrived(_ index: UInt64, isRetransmission: Bool, now: Instant) {
    var i = count
    while i > 0 {
      i -= 1
      if holes[i].index == index {
        if isRetransmission { tolerance.lost() } else { tolerance.late(by: holes[i].opened.duration(to: now)) }
        remove(at: i)
        return
      }
    }
  }

  /// The index of the newest packet that was requested in vain since the last call; nil if there is none.
  mutating func takeGivenUp() -> UInt64? {
    defer { givenUp = nil }
    return givenUp
  }

  mutating func reset() {
    givenUp = nil
    count = 0
    deadline = nil
  }

  /// Writes the sequence numbers that are due into `missing`, oldest first, and returns how many.
  /// - Parameter roundTrip: to the sender.
  mutating func takeDue(_ now: Instant, roundTrip: Duration, into missing: consuming MutableSpan<UInt16>) -> Int {
    var written = 0
    var kept = 0
    var next: Instant?
    let retry = max(.milliseconds(20), roundTrip * 11 / 10 + .milliseconds(10))
    for i in 0..<count {
      var hole = holes[i]
      if hole.due <= now, written < missing.count {
        guard hole.opened.duration(to: now) < Self.longestWait else {
          tolerance.lost()
          givenUp = max(givenUp ?? 0, hole.index)
          continue
        }
        missing[written] = UInt16(truncatingIfNeeded: hole.index)
        written += 1
        hole.pause = max(retry, hole.pause * 5 / 4)
        hole.due = min(now.advanced(by: hole.pause), hole.opened.advanced(by: Self.longestWait))
      }
      next = min(next ?? hole.due, hole.due)
      holes[kept] = hole
      kept += 1
    }
    count = kept
    deadline = next
    return written
  }

  private mutating func remove(at i: Int) {
    for j in i..<count - 1 { holes[j] = holes[j + 1] }
    count -= 1
    if count == 0 { deadline = nil }
  }
}

import MediaModel

/// Decides which holes of one stream are asked for, and when: after the reorder tolerance, then at each round trip, at most `maximumTries` times.
struct NackGenerator {
  /// More holes than this and a key frame is the better answer.
  static let capacity = 256
  static let maximumTries = 10
  /// One packet that jumps further ahead than this opens no holes: it is a new beginning.
  static let maximumGap: UInt64 = 200

  private struct Hole {
    var index: UInt64
    var due: Instant
    var tries: Int
  }

  /// Oldest first.
  private var holes = InlineArray<256, Hole>(repeating: Hole(index: 0, due: Instant(nanoseconds: 0), tries: 0))
  private(set) var count = 0
  /// The newest hole that was given up, until it is taken.
  private var givenUp: UInt64?
  /// When the first hole is due; nil without one.
  private(set) var deadline: Instant?

  /// The stream jumped from `highest` to `index`. False when there are too many holes to mend: they are forgotten.
  mutating func jumped(from highest: UInt64, to index: UInt64, due: Instant) -> Bool {
    let missing = index - highest - 1
    guard missing <= Self.maximumGap, count + Int(missing) <= Self.capacity else {
      count = 0
      deadline = nil
      return false
    }
    for hole in highest + 1..<index {
      holes[count] = Hole(index: hole, due: due, tries: 0)
      count += 1
    }
    if missing > 0 { deadline = min(deadline ?? due, due) }
    return true
  }

  /// An older packet came after all.
  mutating func arrived(_ index: UInt64) {
    var i = count
    while i > 0 {
      i -= 1
      if holes[i].index == index {
        remove(at: i)
        return
      }
    }
  }

  /// The index of the newest packet that was asked for in vain since the last call; nil when there is none.
  mutating func takeGivenUp() -> UInt64? {
    defer { givenUp = nil }
    return givenUp
  }

  mutating func reset() {
    givenUp = nil
    count = 0
    deadline = nil
  }

  /// Writes the sequence numbers that are due into `missing`, oldest first, and returns how many; the next time for these is `retry` from now.
  mutating func takeDue(_ now: Instant, retry: Duration, into missing: consuming MutableSpan<UInt16>) -> Int {
    var written = 0
    var kept = 0
    var next: Instant?
    let later = now.advanced(by: retry)
    for i in 0..<count {
      var hole = holes[i]
      if hole.due <= now, written < missing.count {
        guard hole.tries < Self.maximumTries else {
          givenUp = max(givenUp ?? 0, hole.index)
          continue
        }
        missing[written] = UInt16(truncatingIfNeeded: hole.index)
        written += 1
        hole.tries += 1
        hole.due = later
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

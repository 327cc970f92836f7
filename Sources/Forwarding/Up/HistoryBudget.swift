import MediaModel

/// The memory of all histories of a worker. When none is left, a history that needs more gets it from the largest one, unless it would become larger than that.
///
/// Capacities are powers of two, so the histories of each capacity form a list, and the largest is found without a search.
final class HistoryBudget {
  /// After this time without a packet a history gives its memory back: its track is held, muted or not shown.
  static let idle = Duration.seconds(10)
  /// Histories that one sweep examines, and the pause until the next sweep when none is left.
  private static let sweepCount = 256
  private static let sweepInterval = Duration.seconds(1)

  let limit: Int
  /// Total bytes of the histories' rings.
  private(set) var used = 0
  /// How often a history had to give up half of its memory.
  private(set) var taken: UInt64 = 0
  private(set) var count = 0
  /// The histories with a capacity of 2^n, at index n.
  private var histories = [ContiguousArray<Unmanaged<PacketHistory>>](repeating: [], count: 32)
  /// Where the next sweep continues.
  private var swept = (exponent: 0, place: 0)
  private var nextSweep = Instant(nanoseconds: 0)

  init(limit: Int) { self.limit = limit }

  /// When to look for idle histories; nil if no history has memory.
  var deadline: Instant? { count == 0 ? nil : nextSweep }

  /// Whether the history may have this capacity, which is more than it has.
  func grants(_ history: PacketHistory, _ capacity: Int) -> Bool {
    let more = capacity - history.capacity
    guard used + more > limit else { return true }
    // The one that gives stays at least as large as the one that gets, so that two histories never alternate.
    guard let exponent = histories.lastIndex(where: { !$0.isEmpty }), 1 << exponent >= 2 * capacity else {
      return false
    }
    taken &+= 1
    histories[exponent][0].takeUnretainedValue().halve()
    return used + more <= limit
  }

  func add(_ history: PacketHistory) {
    let exponent = history.capacity.trailingZeroBitCount
    history.place = histories[exponent].count
    histories[exponent].append(.passUnretained(history))
    used += history.capacity
    count += 1
  }

  /// The last one takes the index of the removed one.
  /// - Parameter capacity: 0 for a history that is in no list.
  func remove(at place: Int, capacity: Int) {
    guard capacity > 0 else { return }
    let exponent = capacity.trailingZeroBitCount
    let last = histories[exponent].removeLast()
    if place < histories[exponent].count {
      histories[exponent][place] = last
      last.takeUnretainedValue().place = place
    }
    used -= capacity
    count -= 1
  }

  /// Takes the memory of the idle ones among the next histories.
  /// - Returns: how many were examined.
  func sweep(_ now: Instant) -> Int {
    var looked = 0
    let most = min(Self.sweepCount, count)
    while looked < most {
      guard swept.place < histories[swept.exponent].count else {
        swept = ((swept.exponent + 1) % histories.count, 0)
        continue
      }
      let history = histories[swept.exponent][swept.place].takeUnretainedValue()
      looked += 1
      if history.lastArrival.duration(to: now) >= Self.idle { history.removeAll() } else { swept.place += 1 }
    }
    nextSweep = now.advanced(by: Self.sweepInterval * min(1, Double(Self.sweepCount) / Double(max(1, count))))
    return looked
  }
}

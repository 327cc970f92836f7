import MediaModel

/// The timers of all calls: a heap of due times whose cancelled entries are skipped, and removed when they are the majority.
struct Timers {
  struct Key: Hashable {
    var call: CallID
    var timer: CallTimer
  }

  private struct Entry {
    var due: Timestamp
    /// Breaks ties: of two timers due at the same time, the one set first fires first, so that runs are repeatable.
    var order: UInt64
    var key: Key

    func isBefore(_ other: Entry) -> Bool { (due, order) < (other.due, other.order) }
  }

  private var running: [CallID: [CallTimer: UInt64]] = [:]
  private var heap: [Entry] = []
  private var order: UInt64 = 0
  private(set) var count = 0

  /// The earliest due time.
  var next: Timestamp? { heap.first?.due }

  /// Timers of one call that still run.
  func count(of call: CallID) -> Int { running[call]?.count ?? 0 }

  mutating func set(_ timer: CallTimer, of call: CallID, at due: Timestamp) {
    order += 1
    if running[call, default: [:]].updateValue(order, forKey: timer) == nil { count += 1 }
    push(Entry(due: due, order: order, key: Key(call: call, timer: timer)))
    settle()
  }

  mutating func cancel(_ timer: CallTimer, of call: CallID) {
    guard running[call]?.removeValue(forKey: timer) != nil else { return }
    count -= 1
    settle()
  }

  mutating func cancelAll(of call: CallID) {
    guard let gone = running.removeValue(forKey: call) else { return }
    count -= gone.count
    settle()
  }

  /// Removes and returns the first timer that is due, or nil.
  mutating func popDue(at now: Timestamp) -> Key? {
    guard let first = heap.first, first.due <= now else { return nil }
    running[first.key.call]?[first.key.timer] = nil
    count -= 1
    removeFirst()
    settle()
    return first.key
  }

  private func isRunning(_ entry: Entry) -> Bool { running[entry.key.call]?[entry.key.timer] == entry.order }

  /// Keeps the invariant that the heap's first entry runs.
  private mutating func settle() {
    if heap.count > 64 + 2 * count {
      let live = heap.filter(isRunning)
      heap.removeAll(keepingCapacity: true)
      for entry in live { push(entry) }
    }
    while let first = heap.first, !isRunning(first) { removeFirst() }
  }

  private mutating func push(_ entry: Entry) {
    heap.append(entry)
    var child = heap.count - 1
    while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func removeFirst() {
    let last = heap.removeLast()
    guard !heap.isEmpty else { return }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least]) {
        least = child
      }
      if least == parent { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}

/// A timer of a call. A call has each of them at most once.
enum CallTimer: Hashable, Sendable {
  /// The user's ring is over: missed (rule 4).
  case ring(UserID)
  /// Signaling and media of the participant on this device have been gone for 15 s (rule 10).
  case disconnect(Device)
  /// The disconnected user did not come back within `awaySeconds` (rule 10).
  case away(UserID)
  /// The participant on this device still has no media `connectSeconds` after joining (rule 10), or 20 s after a transfer
  /// (rule 13).
  case connect(Device)
  /// The last member has been alone for `aloneSeconds` (rule 9).
  case alone
  /// `maxHours` have passed (rule 9).
  case expiry
  /// Changes of members have waited for others (section 3).
  case members
  /// The first change that calls for an epoch has waited for others (section 5, Epochs 2).
  case batch
  /// The leader's 3 s to answer are over (Epochs 4).
  case leader
  /// The devices' 2 s, or 1 s, to acknowledge are over (Epochs 5).
  case spread
  /// Confirmations of the newest epoch are announced, several at a time (Epochs 9).
  case confirmed
  /// `rotateMinutes` have passed since the last switch (Epochs 2).
  case rotate
}

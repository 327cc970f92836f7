import CallMessages
import MediaModel
import Octets

/// The timers of all calls, by due time; those that are due at the same time fire in the order in which they were set, so that runs are repeatable. Entries
/// of cancelled timers are skipped, and removed when they are the majority.
struct Timers {
  struct Key: Hashable {
    var call: CallID
    var timer: CallTimer
  }

  private struct Entry {
    var key: Key
    /// Distinguishes it from an earlier entry of the same timer.
    var serial: UInt64
  }

  /// The serials of the entries that are valid.
  private var running: [CallID: [CallTimer: UInt64]] = [:]
  private var heap = Heap<Timestamp, Entry>()
  private var lastSerial: UInt64 = 0
  private(set) var count = 0

  /// The earliest due time.
  var next: Timestamp? { heap.first?.key }

  /// Timers of one call that still run.
  func count(of call: CallID) -> Int { running[call]?.count ?? 0 }

  mutating func set(_ timer: CallTimer, of call: CallID, at due: Timestamp) {
    lastSerial += 1
    if running[call, default: [:]].updateValue(lastSerial, forKey: timer) == nil { count += 1 }
    heap.add(Entry(key: Key(call: call, timer: timer), serial: lastSerial), key: due)
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
    guard let next, next <= now, let key = heap.removeFirst()?.key else { return nil }
    running[key.call]?[key.timer] = nil
    count -= 1
    settle()
    return key
  }

  /// Keeps the invariant that the heap's first entry runs.
  private mutating func settle() {
    let isRunning = { [running] (entry: Entry) in running[entry.key.call]?[entry.key.timer] == entry.serial }
    if heap.count > 64 + 2 * count { heap.removeAll { !isRunning($0) } }
    while let first = heap.first, !isRunning(first.value) { _ = heap.removeFirst() }
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
  /// A waiting guest has not repeated its knock, has waited for as long as it may, or was admitted and did not join.
  case knock(UserID)
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

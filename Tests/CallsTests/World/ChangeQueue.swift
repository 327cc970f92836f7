import CallMessages
import Contract
import MediaModel

/// The changes of members that one listener must be told, each once and in order. In a large call they may wait
/// (protocol section 3).
struct ChangeQueue {
  struct Entry {
    var user: UserID
    /// nil: the member may have had any state in this step, and need not have had one.
    var state: MemberState?
  }

  /// 100 ms is the minimum of protocol section 3, since no world has a call of more than 100.
  private static let longest = Duration.milliseconds(100)

  private var waiting: [(entry: Entry, step: Int, at: Timestamp)] = []

  mutating func add(_ entries: [Entry], step: Int, at now: Timestamp) {
    waiting.removeAll { $0.entry.state == nil && $0.at + ChangeQueue.longest < now }
    for entry in entries { waiting.append((entry, step, now)) }
  }

  /// Some change has not been told.
  var isOwed: Bool { waiting.contains { $0.entry.state != nil } }

  /// Some change from before this step has not been told.
  func isOwed(before step: Int) -> Bool { waiting.contains { $0.entry.state != nil && $0.step < step } }

  func isLate(now: Timestamp) -> Bool {
    waiting.contains { $0.entry.state != nil && $0.at + ChangeQueue.longest < now }
  }

  /// Returns false if nobody made the change, if it was told already, or if another one has to come first. Changes of
  /// one step have no order.
  mutating func hear(_ state: MemberState) -> Bool {
    let state = state.withoutTracks
    guard let place = waiting.firstIndex(where: { $0.entry.state == state }) else {
      return waiting.contains { $0.entry.user == state.user && $0.entry.state == nil }
    }
    let step = waiting[place].step
    guard !isOwed(before: step) else { return false }
    waiting.remove(at: place)
    return true
  }
}

extension EventBody {
  /// The changes of members in it.
  var memberChanges: [MemberChange] {
    switch self {
    case .member(let change): [change]
    case .members(let changes): changes.members
    default: []
    }
  }
}

extension WorldStep {
  /// The members of a continuing call whose state has changed, and those that may have had another state in between.
  func memberChanges(of id: CallID) -> [ChangeQueue.Entry] {
    guard let after = after[id] else { return [] }
    guard let before = before[id] else { return after.members.keys.map { ChangeQueue.Entry(user: $0, state: nil) } }
    var changes: [ChangeQueue.Entry] = []
    for (user, member) in after.members {
      guard before.members[user]?.withoutTracks != member.withoutTracks else { continue }
      changes.append(ChangeQueue.Entry(user: user, state: member.withoutTracks))
      // Several timers may be due, and a transfer may replace another one.
      let isStepwise = isTimeout || isForgetting || (entry != nil && asker?.user == user)
      if isStepwise { changes.append(ChangeQueue.Entry(user: user, state: nil)) }
    }
    // A forgotten user has left before.
    changes += before.members.keys.filter { after.members[$0] == nil }.map { ChangeQueue.Entry(user: $0, state: nil) }
    return changes
  }

  /// Changes of members of the call may wait.
  func mayWait(_ id: CallID, crowd: Int) -> Bool {
    max(before[id]?.joined.count ?? 0, after[id]?.joined.count ?? 0) >= crowd
  }

  /// The call whose state is in the reply.
  var seenCall: CallID? {
    guard isOK else { return nil }
    switch request {
    case .calls(.call(let id, .state)), .calls(.call(let id, .accept)), .calls(.call(let id, .join)),
      .calls(.call(let id, .rejoin)), .calls(.call(let id, .transfer)):
      return id
    default: return nil
    }
  }
}

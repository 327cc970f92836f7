import CallMessages
import Contract
import MediaModel

/// Changes of members of a large call, which wait for others and go out as one event (protocol section 3).
///
/// A listener gets each change that was made while it listened, once. Most get all waiting changes, in one event that is the same for all of them; `heard`
/// contains the few listeners that came after the first change, or had to be told before the others.
struct WaitingChanges {
  /// The most changes that wait. A newcomer's part is a separate event, so this bounds the work of a join.
  static let maximum = 64
  private static let shortest = Duration.milliseconds(100)
  private static let longest = Duration.seconds(1)

  private var changes: [MemberChange] = []
  /// The number of changes, from the first on, that must not be sent to the user.
  private var heard: [UserID: Int] = [:]

  var isEmpty: Bool { changes.isEmpty }
  var isFull: Bool { changes.count >= Self.maximum }

  /// 1 ms for each participant: from 100 participants on, the events of a device no longer grow with the size of the call, as long as people join at its
  /// pace.
  static func time(participants: Int) -> Duration { min(max(shortest, .milliseconds(participants)), longest) }

  mutating func add(_ change: MemberChange) { changes.append(change) }

  /// The user has been told everything so far, or listens from now on.
  mutating func skip(_ user: UserID) { if !changes.isEmpty { heard[user] = changes.count } }

  /// The changes that the user has not been told yet, which then count as told.
  mutating func take(for user: UserID) -> [MemberChange] {
    defer { skip(user) }
    return Array(changes.dropFirst(heard[user] ?? 0))
  }

  /// All waiting changes, and the listeners that get only a part of them. Nothing waits afterwards.
  mutating func takeAll() -> (changes: [MemberChange], parts: [UserID: [MemberChange]]) {
    defer { self = WaitingChanges() }
    return (changes, heard.mapValues { Array(changes.dropFirst($0)) })
  }
}

extension [MemberChange] {
  /// `call.member` for one, `call.members` for several.
  var event: EventBody? { count > 1 ? .members(MemberChanges(members: self)) : first.map(EventBody.member) }
}

/// Announcing the waiting changes.
extension CallControl {
  mutating func wait(_ change: MemberChange, of id: CallID) {
    guard let call = calls[id] else { return }
    if call.waiting.isEmpty {
      timers.set(.members, of: id, at: now + WaitingChanges.time(participants: call.joinedCount))
    }
    calls[id]?.waiting.add(change)
    // A state that is sent before the waiting change already contains it.
    calls[id]?.revision += 1
    // The member that the change removes is told now, because it is not told about anything that follows.
    if !change.member.state.isListening {
      tell(.event(.alone(change.member.user), .member(change)), of: id)
      calls[id]?.waiting.skip(change.member.user)
    }
    if calls[id]?.waiting.isFull == true { tellChanges(of: id) }
  }

  /// Tells all listeners.
  mutating func tellChanges(of id: CallID) {
    if let call = calls[id], !call.waiting.isEmpty { tellChanges(of: id, to: call.listeners) }
  }

  mutating func tellChanges(of id: CallID, to listeners: [UserID]) {
    guard let (changes, parts) = calls[id]?.waiting.takeAll(), let event = changes.event else { return }
    timers.cancel(.members, of: id)
    var all: [UserID] = []
    for user in listeners {
      guard let part = parts[user] else {
        all.append(user)
        continue
      }
      if let event = part.event { tell(.event(.alone(user), event), of: id) }
    }
    tell(.event(.users(all), event), of: id)
  }

  /// Tells the user, a listener, before all others, because the call's state is about to include it.
  mutating func tellChanges(to user: UserID, of id: CallID) {
    guard calls[id]?.waiting.isEmpty == false, calls[id]?.member(user)?.isListening == true,
      let event = calls[id]?.waiting.take(for: user).event
    else { return }
    tell(.event(.alone(user), event), of: id)
  }

  /// The user begins to listen: the waiting changes are in the state that it gets. Or it stops: this is the last that it is
  /// told about others.
  mutating func listens(_ user: UserID, _ isListening: Bool, in id: CallID) {
    guard calls[id]?.waiting.isEmpty == false else { return }
    if isListening {
      calls[id]?.waiting.skip(user)
    } else if let event = calls[id]?.waiting.take(for: user).event {
      tell(.event(.alone(user), event), of: id)
    }
  }
}

extension MemberPhase {
  /// Joined, ringing or disconnected.
  fileprivate var isListening: Bool {
    switch self {
    case .ringing, .joined, .disconnected: true
    case .left, .declined, .missed, .cancelled: false
    }
  }
}

import Calls
import Cluster
import MediaModel

/// Users and calls with as little state as the cluster's promises need: a user has stored notes, connections and a `seq`; a call has members with numbers, a `rev`, epochs with
/// lists, and knows who is connected.
///
/// It stands for `People` and `CallControl`, which cannot yet take one user or one call into memory (docs/architecture.md, "A cluster in virtual time").
struct ModelMachines: ClusterMachines, Sendable {
  enum Request: Sendable {
    case start(CallID, join: UInt64)
    case join(CallID, join: UInt64)
    case leave(CallID)
    case read(CallID)
    case note(UInt64)

    var call: CallID? {
      switch self {
      case .start(let call, _), .join(let call, _), .leave(let call), .read(let call): call
      case .note: nil
      }
    }
  }

  struct CallState: Hashable, Sendable {
    var call: CallID
    var rev: UInt64
    var epoch: UInt64
    /// The members' numbers.
    var list: [Int]
  }

  enum Answer: Sendable {
    case joined(CallState, number: Int)
    case left
    case state(CallState)
    case noted
    case refused
    /// - Parameter isWhole: the device may have missed something.
    case event(seq: UInt64, CallState, isWhole: Bool)
    case over(seq: UInt64, CallID)
  }

  enum Note: Sendable {
    case request(SessionID, number: UInt64, Request)
    case connected(Bool)
    case answer(SessionID, number: UInt64, Answer)
    case news(CallState)
  }

  struct Holding: Sendable { var isConnected: Bool }

  enum Standing: Sendable {
    case member(CallState)
    case stranger
  }

  struct StoredCall: Hashable, Sendable {
    var rev: UInt64 = 0
    var epoch: UInt64 = 0
    var members: [UserID: Int] = [:]
    /// All that were ever given.
    var numbers: [Int: UserID] = [:]
    var joins: [UInt64: Int] = [:]
  }

  enum Change: Sendable {
    case user(Set<UInt64>)
    case call(StoredCall)
  }

  enum Records: Sendable {
    case user(Set<UInt64>, calls: [CallID])
    case call(StoredCall)
  }

  struct User {
    var notes: Set<UInt64>
    var sessions: Set<SessionID> = []
    /// nil: a member, and nothing is known of the call before `attached`.
    var calls: [CallID: CallState?]
    /// Between `meet` and `attached`.
    var meeting: Set<CallID> = []
    var seq: UInt64
  }

  struct Call {
    var stored: StoredCall
    var connected: Set<UserID> = []
  }

  typealias Result = MachineResult<ModelMachines>

  var users: [UserID: User] = [:]
  var calls: [CallID: Call] = [:]
  var mutation: Mutation?

  mutating func adopt(_ entity: EntityID, _ records: Records, term: Term) -> [Result] {
    switch (entity, records) {
    case (.user(let user), .user(let notes, let memberships)):
      let unknown = memberships.map { ($0, CallState?.none) }
      users[user] = User(notes: notes, calls: Dictionary(uniqueKeysWithValues: unknown), seq: term.rawValue << 20)
      return []
    case (.call(let id), .call(let stored)):
      calls[id] = Call(stored: stored)
      // A member counts as connected when the owner of the user says so.
      return stored.members.isEmpty ? [] : store(id)
    default: return []
    }
  }

  mutating func drop(_ entity: EntityID) {
    switch entity {
    case .user(let user): users[user] = nil
    case .call(let call): calls[call] = nil
    }
  }

  func partners(of entity: EntityID) -> [EntityID] {
    switch entity {
    case .user(let user): users[user]?.calls.keys.sorted().map(EntityID.call) ?? []
    case .call(let call): calls[call]?.stored.members.keys.sorted().map(EntityID.user) ?? []
    }
  }

  func isNeeded(_ entity: EntityID) -> Bool { !partners(of: entity).isEmpty }

  mutating func handle(_ event: MachineEvent<ModelMachines>, of entity: EntityID) -> [Result] {
    switch entity {
    case .user(let user): handle(event, of: user)
    case .call(let call): handle(event, of: call)
    }
  }

  // MARK: users

  private mutating func handle(_ event: MachineEvent<ModelMachines>, of user: UserID) -> [Result] {
    guard let known = users[user] else { return [] }
    switch event {
    case .connect(let session):
      users[user]?.sessions.insert(session)
      var results: [Result] = known.sessions.isEmpty ? tellCalls(of: user) : []
      for case (_, let state?) in known.calls.sorted(by: { $0.key < $1.key }) {
        results.append(.answer(session, number: nil, .event(seq: nextSeq(of: user), state, isWhole: true)))
      }
      return results
    case .disconnect(let session):
      users[user]?.sessions.remove(session)
      return known.sessions == [session] ? tellCalls(of: user) : []
    case .request(let session, let number, .note(let value)):
      users[user]?.notes.insert(value)
      return [.change(.user(users[user]?.notes ?? [])), .answer(session, number: number, .noted)]
    case .request(let session, let number, let request):
      guard let call = request.call else { return [] }
      var claims = false
      if case .start = request { claims = true }
      return [.note(.request(session, number: number, request), to: .call(call), claims: claims)]
    case .note(.answer(let session, let number, let answer), .call(let call)):
      var results: [Result] = []
      switch answer {
      case .joined(let state, _):
        results = learn(state, user, but: session)
        // The connection may have ended, or begun, since the request, as in `People.follow`.
        if known.calls[call] == nil {
          results.append(.note(.connected(!known.sessions.isEmpty), to: .call(call), claims: false))
        }
      case .left: users[user]?.calls[call] = nil
      default: break
      }
      if users[user]?.sessions.contains(session) == true {
        results.insert(.answer(session, number: number, answer), at: 0)
      }
      return results
    case .note(.news(let state), _):
      guard case .some(.some) = known.calls[state.call] else { return [] }
      return learn(state, user)
    case .meet(let call):
      if mutation == .meetingIgnored { return [] }
      users[user]?.meeting.insert(call)
      if known.calls[call] != nil { users[user]?.calls[call] = .some(nil) }
      return [.attach(Holding(isConnected: !known.sessions.isEmpty), to: call)]
    case .attached(.member(let state), _):
      users[user]?.meeting.remove(state.call)
      let jumps = mutation != .noJump
      if jumps { users[user]?.seq += 1 }
      users[user]?.calls[state.call] = state
      return tell(user) { .event(seq: $0, state, isWhole: jumps) }
    case .attached(.stranger, let call), .gone(let call):
      users[user]?.meeting.remove(call)
      guard users[user]?.calls.removeValue(forKey: call) != nil else { return [] }
      return tell(user) { .over(seq: $0, call) }
    case .refused(.request(let session, let number, _), _):
      return [.answer(session, number: number, .refused)]
    case .note, .refused, .attach: return []
    }
  }

  private mutating func nextSeq(of user: UserID) -> UInt64 {
    users[user]?.seq += 1
    return users[user]?.seq ?? 0
  }

  private mutating func learn(_ state: CallState, _ user: UserID, but session: SessionID? = nil) -> [Result] {
    if users[user]?.meeting.contains(state.call) == true { return [] }
    if let last = users[user]?.calls[state.call] ?? nil, last.rev >= state.rev { return [] }
    users[user]?.calls[state.call] = .some(state)
    return tell(user, but: session) { .event(seq: $0, state, isWhole: session != nil) }
  }

  private mutating func tell(
    _ user: UserID, but session: SessionID? = nil, _ answer: (UInt64) -> Answer
  ) -> [Result] {
    let seq = nextSeq(of: user)
    return (users[user]?.sessions ?? []).sorted { $0.rawValue < $1.rawValue }.filter { $0 != session }.map {
      .answer($0, number: nil, answer(seq))
    }
  }

  private func tellCalls(of user: UserID) -> [Result] {
    guard let known = users[user] else { return [] }
    // A call that is about to answer `attach` may count the user as a member although he does not know it yet.
    return known.meeting.union(known.calls.keys).sorted().map {
      .note(.connected(!known.sessions.isEmpty), to: .call($0), claims: false)
    }
  }

  // MARK: calls

  private mutating func handle(_ event: MachineEvent<ModelMachines>, of call: CallID) -> [Result] {
    guard let known = calls[call]?.stored else { return [] }
    switch event {
    case .note(.request(let session, let number, let request), .user(let user)):
      func answer(_ answer: Answer) -> Result {
        .note(.answer(session, number: number, answer), to: .user(user), claims: false)
      }
      switch request {
      case .start(_, let join), .join(_, let join):
        if let number = known.joins[join] { return [answer(.joined(state(of: call), number: number))] }
        if let number = known.members[user] {
          calls[call]?.stored.joins[join] = number
          return store(call) + news(of: call, but: user) + [answer(.joined(state(of: call), number: number))]
        }
        var isStart = false
        if case .start = request { isStart = true }
        guard known.numbers.isEmpty == isStart else { return [answer(.refused)] }
        let number = known.numbers.count + 1
        calls[call]?.stored.members[user] = number
        calls[call]?.stored.numbers[number] = user
        calls[call]?.stored.joins[join] = number
        calls[call]?.stored.epoch += 1
        calls[call]?.connected.insert(user)
        return store(call) + [answer(.joined(state(of: call), number: number))] + news(of: call, but: user)
      case .leave:
        guard known.members[user] != nil else { return [answer(.refused)] }
        calls[call]?.stored.members[user] = nil
        calls[call]?.stored.epoch += 1
        calls[call]?.connected.remove(user)
        return store(call) + [answer(.left)] + news(of: call, but: user)
      case .read: return [answer(known.members[user] == nil ? .refused : .state(state(of: call)))]
      case .note: return []
      }
    case .note(.connected(let isConnected), .user(let user)):
      return note(isConnected, user, in: call) ? store(call) + news(of: call, but: nil) : []
    case .attach(let holding, let user):
      guard known.members[user] != nil else { return [.attached(.stranger, to: user)] }
      let changes = note(holding.isConnected, user, in: call) ? store(call) + news(of: call, but: user) : []
      return changes + [.attached(.member(state(of: call)), to: user)]
    default: return []
    }
  }

  private mutating func note(_ isConnected: Bool, _ user: UserID, in call: CallID) -> Bool {
    guard let known = calls[call], known.stored.members[user] != nil,
      known.connected.contains(user) != isConnected
    else { return false }
    if isConnected { calls[call]?.connected.insert(user) } else { calls[call]?.connected.remove(user) }
    return true
  }

  private func state(of call: CallID) -> CallState {
    let stored = calls[call]?.stored ?? StoredCall()
    return CallState(call: call, rev: stored.rev, epoch: stored.epoch, list: stored.members.values.sorted())
  }

  private mutating func store(_ call: CallID) -> [Result] {
    calls[call]?.stored.rev += 1
    return [.change(.call(calls[call]?.stored ?? StoredCall()))]
  }

  private func news(of call: CallID, but user: UserID?) -> [Result] {
    let state = state(of: call)
    return (calls[call]?.stored.members.keys.sorted() ?? []).filter { $0 != user }.map {
      .note(.news(state), to: .user($0), claims: false)
    }
  }
}

import CallMessages
import Cluster
import MediaModel

/// Remembers everything that clients were told, and fails when they are told what must never follow it.
struct Oracle {
  typealias Machines = ModelMachines

  private struct Seen {
    var rev: UInt64 = 0
    var isCurrent = false
  }

  private(set) var failures: [String] = []
  private var lists: [CallID: [UInt64: [Int]]] = [:]
  /// The newest `rev` that anybody was told.
  private(set) var revs: [CallID: UInt64] = [:]
  private(set) var numbers: [CallID: [Int: UserID]] = [:]
  private var joins: [UInt64: Int] = [:]
  private(set) var notes: [UserID: Set<UInt64>] = [:]
  private var seqs: [Int: UInt64] = [:]
  private var seen: [Int: [CallID: Seen]] = [:]
  var exempt: Set<EntityID> = []

  mutating func fail(_ failure: String) { failures.append(failure) }

  /// The device begins a connection, and will be told everything again.
  mutating func begin(_ device: Int) {
    for call in seen[device, default: [:]].keys { seen[device]?[call]?.isCurrent = false }
  }

  func rev(of call: CallID, at device: Int) -> UInt64 { seen[device]?[call]?.rev ?? 0 }

  /// - Parameter before: `rev` of the call as anybody knew it when the request was sent.
  mutating func take(
    _ answer: Machines.Answer, to request: Machines.Request, before: UInt64, of user: UserID, at device: Int
  ) {
    switch (answer, request) {
    case (.joined(let state, let number), .start(let call, let join)),
      (.joined(let state, let number), .join(let call, let join)):
      guard !exempt.contains(.call(call)) else { return }
      if numbers[call, default: [:]].updateValue(user, forKey: number) ?? user != user {
        fail("a number has two users")
      }
      if joins.updateValue(number, forKey: join) ?? number != number { fail("a join has two numbers") }
      take(state, before: before, of: device, jump: true)
    case (.state(let state), .read): take(state, before: before, of: device, jump: true)
    case (.noted, .note(let value)): notes[user, default: []].insert(value)
    case (.left, .leave), (.refused, _): break
    default: fail("an answer to another request")
    }
  }

  mutating func take(event: Machines.Answer, of user: UserID, at device: Int) {
    guard !exempt.contains(.user(user)) else { return }
    switch event {
    case .event(let seq, let state, let isWhole):
      let last = seqs.updateValue(seq, forKey: device) ?? 0
      if seq <= last { fail("seq goes back") }
      take(state, before: 0, of: device, jump: isWhole || seq != last + 1)
    case .over(let seq, let call):
      if seq <= seqs.updateValue(seq, forKey: device) ?? 0 { fail("seq goes back") }
      seen[device]?[call]?.isCurrent = false
    default: fail("an answer without a request")
    }
  }

  private mutating func take(_ state: Machines.CallState, before: UInt64, of device: Int, jump: Bool) {
    guard !exempt.contains(.call(state.call)) else { return }
    if lists[state.call, default: [:]].updateValue(state.list, forKey: state.epoch) ?? state.list != state.list {
      fail("an epoch has two lists")
    }
    if state.rev < before { fail("an answer is older than what was known when it was asked for") }
    let known = seen[device]?[state.call] ?? Seen()
    if state.rev < known.rev, before == 0 { fail("rev goes back") }
    if known.isCurrent, !jump, state.rev > known.rev + 1 { fail("an event is missing, and nothing says so") }
    seen[device, default: [:]][state.call] = Seen(rev: max(known.rev, state.rev), isCurrent: true)
    revs[state.call] = max(revs[state.call] ?? 0, state.rev)
  }
}

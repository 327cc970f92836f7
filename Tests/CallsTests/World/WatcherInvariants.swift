@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel

import CallMessages
@testable import Calls

/// Invariants after each step for connections that watch users, or read the topic of a call.
struct WatcherInvariants {
  let verdict: Verdict
  /// The last state of each watched user that each connection was told; nil: it may have missed something.
  private var told: [SessionID: [UserID: PresenceState.State?]] = [:]
  private var readers: [CallID: Set<SessionID>] = [:]
  /// The number of participants from which on changes of members may wait.
  private let crowd: Int
  /// The changes of members that a topic has not delivered to its readers yet.
  private var changes: [CallID: [SessionID: ChangeQueue]] = [:]
  private var number = 0

  init(_ verdict: Verdict, crowd: Int) {
    self.verdict = verdict
    self.crowd = crowd
  }

  mutating func check(_ step: WorldStep) {
    var there = step.devices
    for case .client(.close(let session, _)) in step.effects { there[session] = nil }
    let before = readers
    checkTopics(step, there)
    if step.isWhole { checkChanges(before, step) }
    checkPresence(step, there)
  }

  // MARK: presence

  private mutating func checkPresence(_ step: WorldStep, _ there: [SessionID: Device]) {
    let node = step.node
    for effect in step.effects {
      switch effect {
      case .client(.reply(let session, _, .ok(.presence(let list)))):
        // A user not named by the back end looks offline, and is not watched.
        let seen = list.users.filter { step.allowed?.contains($0.user) != false || $0.user == step.asker?.user }
        for state in seen { told[session, default: [:]][state.user] = .some(state.state) }
      case .client(.event(let session, let delivery)):
        guard case .presence(let state) = delivery.message.body else { break }
        guard let last = told[session]?[state.user] else {
          verdict.require(.presenceIsTold, false, "the presence of somebody who is not watched")
          break
        }
        verdict.require(.presenceIsTold, last != state.state, "no change of presence")
        told[session]?[state.user] = .some(state.state)
      default: break
      }
    }
    // Presence is not kept: a connection that does not read misses it.
    told = told.filter { there[$0.key] != nil }
    for session in told.keys where !isReading(session, node) {
      told[session] = told[session]?.mapValues { _ in nil }
    }
    if step.isWhole { checkPresence(node, there) }
  }

  /// Every watcher knows the current state of each user about whom it was told.
  func checkPresence(_ node: Node, _ there: [SessionID: Device]) {
    let connected = Set(there.values.map(\.user))
    for states in told.values {
      for (user, state) in states {
        guard let state else { continue }
        let now = presence(of: user, isConnected: connected.contains(user), node)
        verdict.require(.presenceIsTold, state == now, "a watcher believes \(state), but it is \(now)")
      }
    }
  }

  private func isReading(_ session: SessionID, _ node: Node) -> Bool {
    node.people.directory.connection(of: session)?.events != nil
  }

  private func presence(of user: UserID, isConnected: Bool, _ node: Node) -> PresenceState.State {
    guard isConnected else { return .offline }
    let states = node.control.calls.values.compactMap { $0.member(user)?.state.state }
    if states.contains(.joined) { return .inCall }
    if states.contains(.ringing) { return .ringing }
    return node.people.presence.isUnavailable(user, now: node.control.now) ? .unavailable : .available
  }

  // MARK: topics

  private mutating func checkTopics(_ step: WorldStep, _ there: [SessionID: Device]) {
    let before = readers
    update(step, there)
    var published: [SessionID: [CallID: Set<UInt64>]] = [:]
    for case .client(.publish(let session, .call(let id), let message, let event)) in step.effects {
      let isEnd = event.body.name == .callEnded
      verdict.require(
        .topicIsTold, before[id]?.contains(session) == true || readers[id]?.contains(session) == true || isEnd,
        "\(event.body.name) for a user that may not read the topic")
      verdict.require(.topicIsTold, event.body.isPublic || event.body.isRing, "\(event.body.name) is not public")
      published[session, default: [:]][id, default: []].insert(message)
    }
    // Pending events of a device are written when it subscribes, and were published long before.
    if case .subscribe = step.command { return }
    for case .client(.event(_, let delivery)) in step.effects
    where delivery.message.body.isPublic && !delivery.redelivered {
      // Each device has its own part of the waiting changes: see `checkChanges`.
      guard let id = delivery.message.call, delivery.message.body.memberChanges.isEmpty else { continue }
      for session in before[id] ?? [] where readers[id]?.contains(session) == true {
        verdict.require(
          .topicIsTold, published[session]?[id]?.contains(delivery.messageID) == true,
          "\(delivery.message.body.name) was not published")
      }
    }
  }

  /// A topic delivers each change of a member once and in order, however it is divided among the members' own events.
  private mutating func checkChanges(_ before: [CallID: Set<SessionID>], _ step: WorldStep) {
    number += 1
    var published: [CallID: [SessionID: [MemberState]]] = [:]
    for case .client(.publish(let session, .call(let id), _, let event)) in step.effects {
      published[id, default: [:]][session, default: []] += event.body.memberChanges.map(\.member)
    }
    for id in Set(step.changed).union(changes.keys).union(published.keys) {
      guard step.after[id] != nil else {
        changes[id] = nil
        continue
      }
      let entries = step.memberChanges(of: id)
      for session in readers[id] ?? [] {
        let isNew = before[id]?.contains(session) != true
        // A new reader may also get changes that are already waiting.
        let passing = step.after[id]?.members.keys.map { ChangeQueue.Entry(user: $0, state: nil) } ?? []
        changes[id, default: [:]][session, default: ChangeQueue()].add(
          isNew ? passing : entries, step: number, at: step.now)
        for state in published[id]?[session] ?? [] {
          verdict.require(
            .topicIsTold, changes[id]?[session]?.hear(state) == true,
            "a topic has a change in the wrong place, or again")
        }
        guard let queue = changes[id]?[session] else { continue }
        verdict.require(
          .topicIsTold, step.mayWait(id, crowd: crowd) ? !queue.isLate(now: step.now) : !queue.isOwed,
          "a change of \(id.text) was not published")
      }
      changes[id] = changes[id]?.filter { readers[id]?.contains($0.key) == true }
    }
  }

  /// The readers are sessions that were admitted, are still open, and whose user is joined, ringing or disconnected.
  private mutating func update(_ step: WorldStep, _ there: [SessionID: Device]) {
    for case .client(.admission(let session, .call(let id), refusal: nil)) in step.effects {
      readers[id, default: []].insert(session)
    }
    if case .unsubscribe(let session, .call(let id)) = step.command { readers[id]?.remove(session) }
    for id in readers.keys {
      readers[id] = readers[id]?.filter { session in there[session].map { step.isListening($0.user, id) } ?? false }
      if readers[id]?.isEmpty == true { readers[id] = nil }
    }
  }
}

import Contract
import MediaModel

@testable import Calls

/// Invariants after each step for connections that watch users, or read the topic of a call.
struct WatcherInvariants {
  let verdict: Verdict
  /// The last state that each connection was told of each user it watches; nil: it may have missed something.
  private var told: [SessionID: [UserID: PresenceState.State?]] = [:]
  private var readers: [CallID: Set<SessionID>] = [:]

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep) {
    var there = step.devices
    for case .close(let session, _) in step.effects { there[session] = nil }
    checkTopics(step, there)
    checkPresence(step, there)
  }

  // MARK: presence

  private mutating func checkPresence(_ step: WorldStep, _ there: [SessionID: Device]) {
    let node = step.node
    for effect in step.effects {
      switch effect {
      case .reply(let session, _, .ok(let list as PresenceList)):
        // A user whom the back end does not name looks offline, and is not watched.
        let seen = list.users.filter { step.allowed?.contains($0.user) != false || $0.user == step.asker?.user }
        for state in seen { told[session, default: [:]][state.user] = .some(state.state) }
      case .event(let session, let delivery):
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
    // Presence is not kept: who does not read misses it.
    told = told.filter { there[$0.key] != nil }
    for session in told.keys where !isReading(session, node) {
      told[session] = told[session]?.mapValues { _ in nil }
    }
    if step.isWhole { checkPresence(node, there) }
  }

  /// Every watcher knows the present state of each user that it was told of.
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
    for case .publish(let session, .call(let id), let message, let event) in step.effects {
      let isEnd = event.body.name == .callEnded
      verdict.require(
        .topicIsTold, before[id]?.contains(session) == true || readers[id]?.contains(session) == true || isEnd,
        "\(event.body.name) for who may not read the topic")
      verdict.require(.topicIsTold, event.body.isPublic || event.body.isRing, "\(event.body.name) is not public")
      published[session, default: [:]][id, default: []].insert(message)
    }
    // Events pending for a device are written at its subscription, and were published long ago.
    if case .subscribe = step.command { return }
    for case .event(_, let delivery) in step.effects where delivery.message.body.isPublic && !delivery.redelivered {
      guard let id = delivery.message.call else { continue }
      for session in before[id] ?? [] where readers[id]?.contains(session) == true {
        verdict.require(
          .topicIsTold, published[session]?[id]?.contains(delivery.messageID) == true,
          "\(delivery.message.body.name) was not published")
      }
    }
  }

  /// The readers are sessions that were admitted, are still open, and whose user is joined, ringing or disconnected.
  private mutating func update(_ step: WorldStep, _ there: [SessionID: Device]) {
    for case .admission(let session, .call(let id), refusal: nil) in step.effects {
      readers[id, default: []].insert(session)
    }
    if case .unsubscribe(let session, .call(let id)) = step.command { readers[id]?.remove(session) }
    for id in readers.keys {
      readers[id] = readers[id]?.filter { session in there[session].map { step.isListening($0.user, id) } ?? false }
      if readers[id]?.isEmpty == true { readers[id] = nil }
    }
  }
}

import Contract
import MediaModel

@testable import Calls

/// What has to hold after each step for those who watch users, or read the topic of a call.
struct WatcherInvariants {
  private(set) var failure: String?
  /// What each connection was told last of those that it watches; nil: it may have missed something.
  private var told: [SessionID: [UserID: PresenceState.State?]] = [:]
  private var readers: [CallID: Set<SessionID>] = [:]

  private mutating func require(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds, failure == nil { failure = what() }
  }

  mutating func check(
    _ command: Calls.Command, _ effects: [Calls.Effect], _ calls: Calls, _ devices: [SimulatedWorld.SimulatedDevice]
  ) {
    var there = Dictionary(
      devices.compactMap { device in device.session.map { ($0, device) } }, uniquingKeysWith: { first, _ in first })
    for case .close(let session, _) in effects { there[session] = nil }
    checkTopics(command, effects, calls, there)
    checkPresence(effects, calls, there)
  }

  // MARK: presence

  private mutating func checkPresence(
    _ effects: [Calls.Effect], _ calls: Calls, _ there: [SessionID: SimulatedWorld.SimulatedDevice]
  ) {
    for effect in effects {
      switch effect {
      case .reply(let session, _, .ok(let list as PresenceList)):
        for state in list.users { told[session, default: [:]][state.user] = .some(state.state) }
      case .event(let session, let delivery):
        guard case .presence(let state) = delivery.message.body else { break }
        guard let last = told[session]?[state.user] else {
          require(false, "the presence of somebody who is not watched")
          break
        }
        require(last != state.state, "no change of presence")
        told[session]?[state.user] = .some(state.state)
      default: break
      }
    }
    // Presence is not kept: who does not read misses it.
    told = told.filter { there[$0.key] != nil }
    for session in told.keys where there[session]?.isSubscribed == false {
      told[session] = told[session]?.mapValues { _ in nil }
    }
    let connected = Set(there.values.map(\.device.user))
    for states in told.values {
      for (user, state) in states {
        guard let state else { continue }
        let now = presence(of: user, isConnected: connected.contains(user), calls)
        require(state == now, "a watcher believes \(state), but it is \(now)")
      }
    }
  }

  private func presence(of user: UserID, isConnected: Bool, _ calls: Calls) -> PresenceState.State {
    guard isConnected else { return .offline }
    let states = calls.calls.values.compactMap { $0.member(user)?.state.state }
    if states.contains(.joined) { return .inCall }
    if states.contains(.ringing) { return .ringing }
    return calls.presence.isUnavailable(user, now: calls.now) ? .unavailable : .available
  }

  // MARK: topics

  private mutating func checkTopics(
    _ command: Calls.Command, _ effects: [Calls.Effect], _ calls: Calls,
    _ there: [SessionID: SimulatedWorld.SimulatedDevice]
  ) {
    let before = readers
    update(command, effects, calls, there)
    var published: [SessionID: [CallID: Set<UInt64>]] = [:]
    for case .publish(let session, .call(let id), let message, let event) in effects {
      let isEnd = event.body.name == .callEnded
      require(
        before[id]?.contains(session) == true || readers[id]?.contains(session) == true || isEnd,
        "\(event.body.name) for who may not read the topic")
      require(event.body.isPublic || event.body.isRing, "\(event.body.name) is not public")
      published[session, default: [:]][id, default: []].insert(message)
    }
    // What waited for a device is written at its subscription, and was published long ago.
    if case .subscribe = command { return }
    for case .event(_, let delivery) in effects where delivery.message.body.isPublic && !delivery.redelivered {
      guard let id = delivery.message.call else { continue }
      for session in before[id] ?? [] where readers[id]?.contains(session) == true {
        require(
          published[session]?[id]?.contains(delivery.messageID) == true,
          "\(delivery.message.body.name) was not published")
      }
    }
  }

  /// Who reads is who was admitted, is still there, and is joined, ringing or disconnected.
  private mutating func update(
    _ command: Calls.Command, _ effects: [Calls.Effect], _ calls: Calls,
    _ there: [SessionID: SimulatedWorld.SimulatedDevice]
  ) {
    for case .admission(let session, .call(let id), refusal: nil) in effects {
      readers[id, default: []].insert(session)
    }
    if case .unsubscribe(let session, .call(let id)) = command { readers[id]?.remove(session) }
    for id in readers.keys {
      guard let call = calls.calls[id] else {
        readers[id] = nil
        continue
      }
      readers[id] = readers[id]?.filter { session in
        there[session].map { call.member($0.device.user)?.isListening == true } ?? false
      }
    }
  }
}

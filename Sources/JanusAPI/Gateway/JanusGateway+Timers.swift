import MediaModel
import Octets

enum GatewayTimer: Sendable, Hashable {
  case session(UInt64)
  case room(PluginID)
  /// The offer of a subscriber that has waited for its answer, by its number.
  case answer(handle: UInt64, number: UInt64)
  case poll(session: UInt64, exchange: UInt64)
}

extension JanusGateway {
  mutating func fireTimers() {
    while let due = timers.first?.key, due <= now, let timer = timers.removeFirst() {
      switch timer {
      case .session(let id): checkSession(id, due: due)
      case .room(let id): checkRoom(id)
      case .answer(let handle, let number): checkAnswer(handle, number: number)
      case .poll(let session, let exchange):
        if sessions[session]?.poll?.exchange == exchange { endPoll(of: session, with: ["janus": "keepalive"]) }
      }
    }
  }

  /// Sets the session's timer, if none is due before its deadline.
  mutating func watch(session id: UInt64) {
    guard let session = sessions[id] else { return }
    let deadline = session.deadline(timeout: configuration.sessionTimeout)
    guard session.timer.map({ deadline < $0 }) ?? true else { return }
    sessions[id]?.timer = deadline
    timers.add(.session(id), key: deadline)
  }

  private mutating func checkSession(_ id: UInt64, due: Instant) {
    // Another timer has taken the place of one that is not the session's.
    guard let session = sessions[id], session.timer == due else { return }
    sessions[id]?.timer = nil
    guard session.deadline(timeout: configuration.sessionTimeout) <= now else { return watch(session: id) }
    deliver(["janus": "timeout", "session_id": JSONTree(id)], to: id)
    answerPoll(of: id)
    endSession(id)
  }

  /// Notes whether the room has become empty or is no longer.
  mutating func noteEmptiness(of id: PluginID) {
    guard let room = rooms[id] else { return }
    guard room.isEmpty else {
      rooms[id]?.emptySince = nil
      return
    }
    guard room.emptySince == nil else { return }
    rooms[id]?.emptySince = now
    if isDraining { return endRoom(id) }
    watch(room: id)
  }

  mutating func watch(room id: PluginID) {
    guard let timeout = configuration.emptyTimeout, let room = rooms[id], !room.isPreset, !room.hasTimer,
      let since = room.emptySince
    else { return }
    rooms[id]?.hasTimer = true
    timers.add(.room(id), key: since.advanced(by: timeout))
  }

  private mutating func checkRoom(_ id: PluginID) {
    guard let room = rooms[id], room.hasTimer else { return }
    rooms[id]?.hasTimer = false
    guard let since = room.emptySince, let timeout = configuration.emptyTimeout else { return }
    if since.advanced(by: timeout) <= now { endRoom(id) } else { watch(room: id) }
  }

  private mutating func checkAnswer(_ id: UInt64, number: UInt64) {
    guard let subscription = handles[id]?.subscription, subscription.phase == .offered, subscription.offer == number
    else { return }
    closePeer(ofSubscriber: id, reason: "No answer")
    proceed(id)
  }
}

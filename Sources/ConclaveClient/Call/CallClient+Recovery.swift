import Contract
import MediaModel

/// Returning automatically (protocol section 4, rules 10 to 13 and 16).
extension CallClient {
  func recover(_ id: CallID, _ input: Recovery.Input) {
    if let action = calls[id]?.recovery.handle(input, now: Self.now, using: &generator) { carryOut(action, of: id) }
    scheduleTimer()
  }

  func mediaFailed(_ id: CallID) { recover(id, .mediaFailed) }

  func carryOut(_ action: Recovery.Action, of id: CallID) {
    switch action {
    case .askState: askState(of: id)
    case .restartMedia: calls[id]?.updates.yield(.restartMedia)
    case .giveUp(let code): end(id, reason: code)
    case .rejoin:
      calls[id]?.updates.yield(.rejoining)
      Task { await rejoin(id) }
    }
  }

  /// Requests the call's state, unless it is already requested.
  func askState(of id: CallID) {
    guard askedStates.insert(id).inserted else { return }
    Task { await connection.askState(of: id) }
  }

  /// A call of which this device is no longer a member is over.
  func take(_ reply: Result<CallState, SignalingError>, of id: CallID) {
    askedStates.remove(id)
    switch reply {
    case .success(let state): apply(.state(state), to: id)
    case .failure(.refused("call.not-found", _)), .failure(.refused("call.ended", _)):
      if case .failure(.refused(let code, _)) = reply, calls[id] != nil { end(id, reason: code) }
    // Without a connection nothing is lost: the next one begins with the state.
    case .failure: feed(.stateFailed, to: id)
    }
  }

  private func rejoin(_ id: CallID) async {
    await waitForConnection()
    guard let call = calls[id] else { return }
    let credentials = makeCredentials(id)
    do throws(SignalingError) {
      let joined: Joined
      let keepsState = call.isCurrent
      // Events that are lost from now on are requested once it is back.
      call.isCurrent = true
      if keepsState {
        var body = credentials.body
        body.state = false
        let rejoined = try await requestAgain(.call(id, .rejoin(body)), reply: Rejoined.self)
        joined = Joined(call: call.session.state, participant: rejoined.participant, ice: rejoined.ice)
      } else {
        joined = try await requestAgain(.call(id, .rejoin(credentials.body)), reply: Joined.self)
      }
      guard joined.call.id == id else { throw .notUnderstood }
      guard calls[id] === call, !call.isLeaving else {
        // The person has left meanwhile, and no ghost must stay behind. If the person has joined again since, that stay
        // goes on.
        if calls[id] == nil || call.isLeaving { _ = try? await perform(.call(id, .leave)) }
        return
      }
      resume(id, joined, credentials, keepsState: keepsState)
    } catch {
      // Events that arrived meanwhile are dropped.
      call.isCurrent = false
      if case .refused(let code, _) = error {
        recover(id, .rejoinFailed(code: code))
      } else if isOver {
        end(id, reason: "disconnected")
      } else {
        recover(id, .rejoinFailed(code: nil))
      }
      dropEarly()
    }
  }

  /// Continues as the new participant. The old participant's keys still open frames in flight.
  private func resume(_ id: CallID, _ joined: Joined, _ credentials: JoinCredentials, keepsState: Bool) {
    guard let call = calls[id] else { return }
    call.cipher.stopSending()
    call.leftovers = (call.cipher.epochs, Self.now.advanced(by: HeldEpochs.overlap))
    call.session = CallSession(joined, user: identity.address.user)
    for delivery in call.deliveries { deliveries[delivery] = nil }
    call.deliveries = []
    let former = call.keys
    call.keys = agreement(credentials, .other).withoutKnowledge
    call.tracks.beginStay()
    call.consent.beginStay()
    if !keepsState { call.consent.take(joined.call.recording) }
    let effects = lend(to: call) { keys in
      keys.follow(former, now: Self.now)
      return keys.enter(joined, now: Self.now)
    }
    call.stay.begin(joined)
    call.cipher.assign([:], now: Self.now)
    recover(id, .rejoined)
    perform(effects, of: id)
    call.updates.yield(.rejoined(participant: joined.participant))
    call.updates.yield(.changed)
    takeEarly(joined, isRejoined: true, keepsState: keepsState)
  }

  func isComingBack(to id: CallID) -> Bool { calls[id]?.recovery.isRejoining ?? false }

  /// An event for the previous participant. It still changes what this device knows about the call, unless a newer state has
  /// arrived.
  func pass(_ delivery: ReceivedEvent, to id: CallID, keepsState: Bool) {
    defer { acknowledge(delivery) }
    guard let call = calls[id], keepsState else { return }
    let body = delivery.message.body
    guard call.session.follow(body, rev: delivery.message.rev) else { return }
    if case .state(let state) = body {
      call.isCurrent = true
      feed(.state(state), to: id)
    }
    let changes = CallSession.changes(in: body)
    if !changes.isEmpty { feed(.members(changes.map(\.member)), to: id) }
  }

  /// Passes on the events that arrived while the join was being answered.
  func takeEarly(_ joined: Joined, isRejoined: Bool, keepsState: Bool = false) {
    let id = joined.call.id
    let (deliveries, isComplete) = early.take(id)
    // Events before the one that begins the new stay were meant for the previous participant. An old state, if applied, would say that the new one is gone.
    let start = deliveries.firstIndex { $0.message.body.begins(joined.participant) }
    // The reply may overtake that event, which only a rejoin brings. An event for which there was no room does not
    // arrive.
    calls[id]?.phase = isRejoined && start == nil && isComplete ? .beginning(keepsState: keepsState) : .present
    for delivery in deliveries[..<(start ?? 0)] { pass(delivery, to: id, keepsState: keepsState) }
    for delivery in deliveries[(start ?? 0)...] { route(delivery, to: id) }
    // Events were lost meanwhile.
    if !isComplete { calls[id]?.isCurrent = false }
    if calls[id]?.isCurrent == false { catchUp(id) }
  }

  /// Whether a join of the call is awaited, or the call continues once its rejoin is answered.
  func isEntering(_ id: CallID) -> Bool { joining[id] != nil || calls[id] != nil }

  /// A join is no longer awaited: drops the events kept for it, which belong to a call that this device is not in.
  func dropEarly() {
    for id in early.calls where joining[id] == nil && calls[id]?.recovery.isRejoining != true {
      for delivery in early.take(id).events { acknowledge(delivery) }
    }
  }

  /// Keys of the previous participant are forgotten when their overlap is over.
  func forgetLeftovers(of id: CallID) {
    guard let call = calls[id], let leftovers = call.leftovers, leftovers.due <= Self.now else { return }
    for epoch in leftovers.epochs where !call.keys.holds(epoch) { call.cipher.retire(epoch) }
    calls[id]?.leftovers = nil
  }
}

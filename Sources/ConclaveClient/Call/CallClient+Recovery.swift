import Contract
import MediaModel

/// Coming back by itself (protocol section 4, rules 10 to 13 and 16).
extension CallClient {
  func recover(_ id: CallID, _ input: Recovery.Input) {
    var generator = SystemRandomNumberGenerator()
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

  /// Asks how the call stands.
  func askState(of id: CallID) { Task { await connection.askState(of: id) } }

  /// A call that this device is no member of any more is over.
  func take(_ reply: Result<CallState, SignalingError>, of id: CallID) {
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
    guard calls[id] != nil else { return }
    let credentials = makeCredentials(id)
    do throws(SignalingError) {
      let joined = try await requestAgain(.rejoin(id, credentials.body), reply: Joined.self)
      guard joined.call.id == id else { throw .notUnderstood }
      guard calls[id] != nil else {
        // The person has left meanwhile: no ghost stays behind.
        return _ = try? await perform(.leave(id))
      }
      resume(id, joined, credentials)
    } catch {
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

  /// Goes on as the new participant. The keys of the one that was still open what is on its way.
  private func resume(_ id: CallID, _ joined: Joined, _ credentials: JoinCredentials) {
    guard let call = calls[id] else { return }
    call.cipher.stopSending()
    call.leftovers = (call.cipher.epochs, Self.now.advanced(by: KeyAgreement.overlap))
    call.session = CallSession(joined)
    for delivery in call.deliveries { deliveries[delivery] = nil }
    call.deliveries = []
    call.keys = agreement(credentials).withoutKnowledge
    let effects = lend(to: call) { $0.enter(joined, now: Self.now) }
    call.stay.begin(joined)
    call.cipher.assign([:], now: Self.now)
    recover(id, .rejoined)
    perform(effects, of: id)
    call.updates.yield(.rejoined(participant: joined.participant))
    call.updates.yield(.changed)
    takeEarly(joined, isRejoined: true)
  }

  func isComingBack(to id: CallID) -> Bool { calls[id]?.recovery.isRejoining ?? false }

  /// Keys of the participant that was are forgotten when their overlap is over.
  func forgetLeftovers(of id: CallID) {
    guard let call = calls[id], let leftovers = call.leftovers, leftovers.due <= Self.now else { return }
    for epoch in leftovers.epochs where !call.keys.holds(epoch) { call.cipher.retire(epoch) }
    calls[id]?.leftovers = nil
  }
}

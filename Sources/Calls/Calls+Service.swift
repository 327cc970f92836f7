import Contract
import MediaModel

/// Requests of the app's back end, and events for it (protocol section 11).
extension Calls {
  mutating func perform(_ request: Request, service identity: Identity) throws(RequestError) -> Outcome {
    switch request {
    case .start(let body): return try start(body, service: identity)
    case .end(let id):
      try checkRuns(id)
      var out = Outputs()
      calls[id]?.endByService(now: now, out: &out)
      return Outcome(NoBody(), id, out)
    case .state(let id):
      try checkRuns(id)
      guard let call = calls[id] else { throw .notFound }
      return Outcome(call.stateForServices)
    case .listCalls: return Outcome(CallList(calls: newestCalls()))
    default:
      throw RequestError(.authForbidden, "a service is no device of a call: it may start, end, list and see calls")
    }
  }

  private func checkRuns(_ id: CallID) throws(RequestError) {
    guard calls[id] == nil else { return }
    guard ended.contains(id) else { throw .notFound }
    throw RequestError(.callEnded, "the call has ended")
  }

  /// On behalf of a user, who is rung like the callees; the first who joins makes epoch 1.
  private mutating func start(_ request: StartCall, service identity: Identity) throws(RequestError) -> Outcome {
    guard let user = request.as else {
      throw RequestError(.requestInvalid, "a service starts a call on behalf of a user", field: "as")
    }
    guard request.envelopes?.isEmpty != false else {
      throw RequestError(.keysNotAllowed, "a service hands out no keys", field: "envelopes")
    }
    var starter = try joiner(identity, joinId: request.joinId, joinKey: nil)
    starter.keys = nil
    let id = request.id == nil ? makeCallID() : try request.checkedID()
    if let reply = try firstReply(to: request, from: starter.token) { return Outcome(StartedCall(reply)) }
    try checkServes()
    let rules = try checkStart(request)
    guard directory.hasKeys(user) else {
      throw RequestError(.userNotFound, "no device of this user is known here, so nobody can be rung", field: "as")
    }
    let callees = try callees([user] + request.callees, for: nil, .everybody)
    var out = Outputs()
    out.add(.made)
    let epochs = Epochs(call: id, rotationTime: rules.rotationTime, digest: digest)
    var call = Call(
      id: id, media: request.media, starter: starter, initiator: user, rules: rules, limits: callLimits,
      metadata: request.metadata, epochs: epochs, now: now)
    call.soleCallee = callees.count == 2 ? callees[1].user : nil
    out.set(.expiry, at: now + rules.lifetime)
    let results = try call.ring(callees, by: user, metadata: nil, isStart: true, now: now, out: &out)
    let reply = Joined(call: call.state, participant: 0, ice: ICE(), results: results)
    call.firstReply = reply
    call.settle(now: now, out: &out)
    calls[call.id] = call
    starts[starter.token] = call.id
    return Outcome(StartedCall(reply), call.id, out)
  }

  /// The newest first, as many as fit into a reply of some megabytes.
  private func newestCalls() -> [CallState] {
    var room = 8_000
    let order = calls.values.sorted { ($1.startedAt, $1.id) < ($0.startedAt, $0.id) }
    return order.prefix { call in
      room -= 1 + call.members.count
      return room >= 0
    }.map(\.stateForServices)
  }

  // MARK: what services are told

  /// Whether a service, or a webhook, reads the channel.
  func isHeard(_ channel: Channel) -> Bool { configuration.hasWebhooks || topics.isRead(channel) }

  mutating func tellService(_ channel: Channel, _ message: Message) {
    write(message, to: channel)
    if configuration.hasWebhooks { effects.append(.webhook(channel, message.event)) }
  }

  /// `push.ring`: for devices of these callees that have to be woken.
  mutating func push(to users: [UserID], of id: CallID) {
    guard isHeard(.servicePush) else { return }
    for user in users {
      let away = directory.entries(of: user).map(\.device).filter {
        !directory.isConnected(Device(user: user, device: $0))
      }
      guard !away.isEmpty, let ring = calls[id]?.push(user, devices: away) else { continue }
      tellService(.servicePush, makeMessage(.pushRing(ring), of: id))
    }
  }

  /// The ring is answered or over.
  mutating func pushCancel(of user: UserID, _ id: CallID) {
    guard isHeard(.servicePush) else { return }
    tellService(.servicePush, makeMessage(.pushCancel(PushCancel(user: user)), of: id))
  }

  mutating func tellOfNewCall(_ id: CallID) {
    guard isHeard(.serviceCalls), var state = calls[id]?.firstReply?.call else { return }
    state.metadata = nil
    tellService(.serviceCalls, makeMessage(.state(state), of: id))
  }
}

extension Call {
  fileprivate var stateForServices: CallState {
    var state = state
    state.metadata = nil
    return state
  }
}

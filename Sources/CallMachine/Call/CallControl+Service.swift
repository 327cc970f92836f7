import CallMessages
import Contract
import MediaModel

/// Requests of the app's back end (protocol section 11).
extension CallControl {
  mutating func performForService(_ request: BriefedRequest) throws(RequestError) -> Transition {
    switch request.request {
    case .start(let body): return try startForService(body, request)
    case .call(let id, .end):
      try checkRuns(id)
      var out = Outputs()
      calls[id]?.endFromOutside(.endedByService, now: now, out: &out)
      return Transition(.done, id, out)
    case .call(let id, .state):
      try checkRuns(id)
      guard let call = calls[id] else { throw .notFound }
      return Transition(.state(call.stateForServices))
    case .list: return Transition(.calls(CallList(calls: newestCalls())))
    case .call(_, .accept), .call(_, .decline), .call(_, .invite), .call(_, .cancel), .call(_, .join),
      .call(_, .rejoin), .call(_, .transfer), .call(_, .leave), .call(_, .link), .call(_, .knock),
      .call(_, .admitGuest), .call(_, .refuseGuest), .call(_, .removeGuest), .call(_, .hold), .call(_, .report),
      .inCall:
      throw .notForServices
    }
  }

  private func checkRuns(_ id: CallID) throws(RequestError) {
    guard calls[id] == nil else { return }
    guard ended.contains(id) else { throw .notFound }
    throw RequestError(.callEnded, "the call has ended")
  }

  /// `start` on behalf of a user, who is rung like the callees. The first device that joins makes epoch 1.
  private mutating func startForService(
    _ request: StartCall, _ message: BriefedRequest
  ) throws(RequestError) -> Transition {
    guard let user = request.as else {
      throw RequestError(.requestInvalid, "a service starts a call on behalf of a user", field: "as")
    }
    guard request.envelopes?.isEmpty != false else {
      throw RequestError(.keysNotAllowed, "a service hands out no keys", field: "envelopes")
    }
    var starter = try joiner(message.caller, joinId: request.joinId, joinKey: nil)
    starter.keys = nil
    let id = request.id == nil ? makeCallID() : try request.checkedID()
    if let reply = try firstReply(to: request, from: starter.token) { return Transition(.started(StartedCall(reply))) }
    try checkServes()
    let rules = try checkStart(request)
    let callees = message.callees
    guard callees.first(where: { $0.user == user })?.hasKeys == true else {
      throw RequestError(.userNotFound, "no device of this user is known here, so nobody can be rung", field: "as")
    }
    try checkCount(callees)
    var out = Outputs()
    out.add(.made)
    let epochs = Epochs(call: id, rotationTime: rules.rotationTime, digest: hashing.digest)
    var call = Call(
      id: id, media: request.media, starter: starter, initiator: user, rules: rules, limits: configuration.limits,
      metadata: request.metadata, epochs: epochs, now: now)
    call.soleCallee = callees.count == 2 ? callees[1].user : nil
    out.set(.expiry, at: now + rules.lifetime)
    let results = try call.ring(
      callees, by: user, words: nil, metadata: nil, isStart: true, now: now, out: &out)
    let reply = Joined(call: call.state, participant: 0, ice: ICE(), results: results)
    call.start.reply = reply
    call.settle(now: now, out: &out)
    calls[call.id] = call
    starts[starter.token] = call.id
    return Transition(.reply(.started(StartedCall(reply))), call.id, out)
  }

  /// Newest first, as many as fit into a reply of some megabytes.
  private func newestCalls() -> [CallState] {
    var room = 8_000
    let order = calls.values.sorted { ($1.startedAt, $1.id) < ($0.startedAt, $0.id) }
    return order.prefix { call in
      room -= 1 + call.members.count
      return room >= 0
    }.map(\.stateForServices)
  }
}

extension Call {
  fileprivate var stateForServices: CallState {
    var state = state
    state.metadata = nil
    return state
  }
}

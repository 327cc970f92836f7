import Contract
import MediaModel

/// Requests, and their replies.
extension Calls {
  mutating func respond(to session: SessionID, _ id: String, _ request: Request) {
    guard let identity = identity(of: session) else { return }
    do throws(RequestError) {
      if !identity.isService {
        if let query = try historyQuery(request, identity.device) {
          return effects.append(.history(session, id: id, query))
        }
        if try ask(before: request, identity, session, id) { return }
      }
    } catch {
      return effects.append(.reply(session, id: id, .failed(error)))
    }
    perform(request, id, on: session, identity, .everybody)
  }

  /// `reach` is whom the request may reach, when that had to be asked.
  mutating func perform(
    _ request: Request, _ id: String, on session: SessionID, _ identity: Identity, _ reach: Reach
  ) {
    let outcome: Outcome
    do throws(RequestError) {
      outcome =
        try identity.isService ? perform(request, service: identity) : perform(request, identity, reach)
    } catch {
      return effects.append(.reply(session, id: id, .failed(error)))
    }
    effects.append(.reply(session, id: id, .ok(outcome.reply)))
    if let call = outcome.call, let speaker = outcome.speaker { holdOthers(of: speaker, but: call) }
    if let call = outcome.call { carryOut(outcome.outputs, of: call) }
    if let user = outcome.devicesChanged { tellOfDevices(of: user) }
    if let device = outcome.removed { remove(device) }
    if let (device, message) = outcome.pairing { deliver(makeMessage(.pairing(message), of: nil), to: device) }
  }

  private mutating func perform(
    _ request: Request, _ identity: Identity, _ reach: Reach
  ) throws(RequestError) -> Outcome {
    let device = identity.device
    switch request {
    case .registerDevice(let body): return try register(body, for: identity)
    case .listDevices(let body): return try list(body, reach)
    case .start(let body): return try start(body, identity, reach)
    case .accept(let id, let body): return try join(id, body, .accept, identity)
    case .join(let id, let body): return try join(id, body, .join, identity)
    case .rejoin(let id, let body): return try join(id, body, .rejoin, identity)
    case .transfer(let id, let body): return try join(id, body, .transfer, identity)
    case .invite(let id, let body): return try invite(id, body, identity, reach)
    case .listCalls: return Outcome(CallList(calls: callsToJoin(device)))
    case .media: throw RequestError(.internal, "an offer was not read")
    case .decline(let id, _):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.decline(device, now: now, out: &out)
      }
    case .cancel(let id, let body):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.cancel(body.callees, by: device.user, now: now, out: &out)
      }
    case .leave(let id):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.leave(device, now: now, out: &out)
      }
    case .end(let id):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.end(by: device.user, now: now, out: &out)
      }
    case .state(let id): return try with(id, device.user) { call, _, _ throws(RequestError) in call.state }
    case .hold(let id, let body): return try hold(id, body, device)
    case .link(let id, let body):
      try checkRole(identity)
      return try link(id, body, device.user)
    case .removeDevice(let body): return try checkRemoval(body, by: device)
    case .report(let id, let body): return try report(id, body, device)
    case .vouchForDevice(let body): return try vouch(body, by: device)
    case .revokeDevice(let body): return try revoke(body, by: device)
    case .pairDevice(let body): return try pair(body, from: device)
    case .track, .receive, .message, .stats, .keys, .requestKey, .listKeys, .waitForKey, .confirmKey,
      .listConfirmations:
      return try performInside(request, device)
    case .setPresence(let body): return try setPresence(body, identity)
    case .watchPresence(let body): return try watchPresence(body, identity, reach)
    case .listHistory, .deleteHistory, .historyTotals: throw RequestError(.internal, "the history was not read")
    }
  }

  /// Requests of participants alone.
  private mutating func performInside(_ request: Request, _ device: Device) throws(RequestError) -> Outcome {
    switch request {
    case .track(let id, let track, let body):
      return try change(id, device.user) { call, _, out throws(RequestError) in
        try call.mute(track, body.muted, from: device, out: &out)
      }
    case .requestKey(let id, let body):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.requestKey(body.epoch, from: device, now: now, out: &out)
      }
    case .keys(let id, let body):
      return try with(id, device.user) { call, now, out throws(RequestError) in
        try call.handOut(body, from: device, now: now, out: &out)
      }
    case .receive(let id, let body):
      return try change(id, device.user) { call, _, out throws(RequestError) in
        try call.receive(body, device: device, out: &out)
      }
    case .message(let id, let body):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.message(body, from: device, now: now, out: &out)
      }
    case .stats(let id, let body): return try measure(id, body, device)
    case .listKeys(let id, let body):
      return try with(id, device.user) { call, _, _ throws(RequestError) in try call.keyList(body, for: device) }
    case .waitForKey(let id, let body):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.waitForKey(body, from: device, now: now, out: &out)
      }
    case .confirmKey(let id, let body):
      return try change(id, device.user) { call, now, out throws(RequestError) in
        try call.confirmKey(body, from: device, now: now, out: &out)
      }
    case .listConfirmations(let id, let body):
      return try with(id, device.user) { call, _, _ throws(RequestError) in
        try call.confirmations(body, for: device)
      }
    default: throw RequestError(.requestUnknown, "there is no such request")
    }
  }

  /// Runs a transition of a call that the user is a member of; its result is the reply.
  mutating func with(
    _ id: CallID, _ user: UserID,
    _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> any Encodable & Sendable
  ) throws(RequestError) -> Outcome {
    try checkMembership(user, of: id)
    return try run(id, transition)
  }

  /// The same, whoever asks.
  mutating func run(
    _ id: CallID, _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> any Encodable & Sendable
  ) throws(RequestError) -> Outcome {
    var out = Outputs()
    // In place: a copy of the call would be a copy of all its members.
    guard let body = try calls[id].mutate({ call throws(RequestError) in try transition(&call, now, &out) }) else {
      throw .notFound
    }
    return Outcome(body, id, out)
  }

  private mutating func change(
    _ id: CallID, _ user: UserID, _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> Void
  ) throws(RequestError) -> Outcome {
    try with(id, user) { call, now, out throws(RequestError) in
      try transition(&call, now, &out)
      return NoBody()
    }
  }

  func checkMembership(_ user: UserID, of id: CallID) throws(RequestError) {
    if calls[id]?.member(user) != nil { return }
    guard ended.wasMember(user, of: id) else { throw .notFound }
    throw RequestError(.callEnded, "the call has ended")
  }

  /// The calls that this device could `join` or `rejoin` now.
  func callsToJoin(_ device: Device) -> [CallState] {
    (memberships[device.user] ?? []).compactMap { id in
      guard let call = calls[id], let member = call.member(device.user) else { return nil }
      switch member.phase {
      case .joined: return member.participant(on: device) == nil ? nil : call.state
      case .cancelled: return member.hasBeenIn ? call.state : nil
      case .ringing, .disconnected, .left, .declined, .missed: return call.state
      }
    }
  }
}

extension Optional {
  fileprivate mutating func mutate<Result, Failure: Error>(
    _ change: (inout Wrapped) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard self != nil else { return nil }
    return try change(&self!)
  }
}

import Contract
import MediaModel

/// The result of a request: the reply, which goes first, and its consequences.
struct Transition {
  var reply: any Encodable & Sendable
  var call: CallID?
  var outputs = Outputs()
  /// This device speaks in the call now: its other calls are held.
  var speaker: Device?

  init(_ reply: any Encodable & Sendable) { self.reply = reply }

  init(_ reply: any Encodable & Sendable, _ call: CallID, _ outputs: Outputs) {
    self.reply = reply
    self.call = call
    self.outputs = outputs
  }
}

/// Requests, and their replies.
extension CallControl {
  mutating func respond(to request: CallRequest) {
    let done: Transition
    do throws(RequestError) {
      if try check(request), request.asks { return out.messages.append(.checked(request)) }
      switch request.request {
      case _ where request.caller.identity.isService: break
      case .report(let id, let body):
        let report = try report(id, body, request.caller.device)
        return out.messages.append(.report(request.session, id: request.id, report, of: id, number: random()))
      case .listHistory(let body):
        return out.messages.append(
          .history(request.session, id: request.id, history(body, of: request.caller)))
      default: break
      }
      // The state in the reply says what waits.
      if let id = request.request.callToSee { tellChanges(to: request.caller.device.user, of: id) }
      done = try request.caller.identity.isService ? performForService(request) : perform(request)
    } catch {
      return out.messages.append(.reply(request.session, id: request.id, .failed(error)))
    }
    out.messages.append(.reply(request.session, id: request.id, .ok(done.reply)))
    guard let call = done.call else { return }
    if let speaker = done.speaker { _ = calls[call]?.withParticipant(of: speaker) { $0.turn = request.turn } }
    carryOut(done.outputs, of: call)
    // After the news that the device is in the call, so that of two calls one holds the other whichever is heard of last.
    if let speaker = done.speaker { out.messages.append(.speaks(speaker, in: call, turn: request.turn)) }
  }

  /// Makes all checks that are possible before the back end is asked which users the request may reach.
  /// - Returns: false for one that is a repetition: its reply is known.
  private func check(_ request: CallRequest) throws(RequestError) -> Bool {
    guard !request.caller.identity.isService else { return true }
    switch request.request {
    case .start(let body):
      _ = try body.checkedID()
      let token = JoinToken(device: request.caller.device, joinId: body.joinId ?? Base64Bytes([]))
      if try firstReply(to: body, from: token) != nil { return false }
      try checkMayStart(request.caller)
    case .invite(let id, _):
      try checkMembership(request.caller.device.user, of: id)
      try checkRole(request.caller)
    default: return true
    }
    try checkCount(request.callees)
    return true
  }

  private mutating func perform(_ request: CallRequest) throws(RequestError) -> Transition {
    let caller = request.caller
    let device = caller.device
    switch request.request {
    case .start(let body): return try start(body, request)
    case .accept(let id, let body): return try join(id, body, .accept, caller)
    case .join(let id, let body): return try join(id, body, .join, caller)
    case .rejoin(let id, let body): return try join(id, body, .rejoin, caller)
    case .transfer(let id, let body): return try join(id, body, .transfer, caller)
    case .invite(let id, let body): return try invite(id, body, request)
    case .listCalls: return Transition(CallList(calls: callsToJoin(caller)))
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
      try checkRole(caller)
      return try link(id, body, device.user)
    default: return try performInside(request.request, device)
    }
  }

  /// Requests of participants alone.
  private mutating func performInside(_ request: Request, _ device: Device) throws(RequestError) -> Transition {
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
  ) throws(RequestError) -> Transition {
    try checkMembership(user, of: id)
    return try run(id, transition)
  }

  /// The same for every asker.
  mutating func run(
    _ id: CallID, _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> any Encodable & Sendable
  ) throws(RequestError) -> Transition {
    var outputs = Outputs()
    guard let body = try calls[id].mutate({ call throws(RequestError) in try transition(&call, now, &outputs) }) else {
      throw .notFound
    }
    return Transition(body, id, outputs)
  }

  private mutating func change(
    _ id: CallID, _ user: UserID, _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> Void
  ) throws(RequestError) -> Transition {
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

  /// Call waiting: of the calls that a device is in, all but one are held.
  private mutating func hold(_ id: CallID, _ request: Hold, _ device: Device) throws(RequestError) -> Transition {
    var done = try with(id, device.user) { call, _, out throws(RequestError) in
      try call.hold(request.held, device, out: &out)
      return NoBody()
    }
    if !request.held { done.speaker = device }
    return done
  }

  /// The calls that the device could `join` or `rejoin` now.
  private func callsToJoin(_ caller: Caller) -> [CallState] {
    caller.calls.compactMap { id in
      guard let call = calls[id], let member = call.member(caller.device.user) else { return nil }
      switch member.phase {
      case .joined: return member.participant(on: caller.device) == nil ? nil : call.state
      case .cancelled: return member.hasBeenIn ? call.state : nil
      case .ringing, .disconnected, .left, .declined, .missed: return call.state
      }
    }
  }

  /// - Parameter request: with a limit that was checked.
  private func history(_ request: ListHistory, of caller: Caller) -> HistoryQuery {
    .list(
      // Also calls that began before the clock was set back.
      caller.device.user, before: request.before ?? Timestamp(milliseconds: .max), limit: request.limit ?? 50,
      rejoinable: Set(callsToJoin(caller).map(\.id)))
  }
}

extension Request {
  /// The call whose state is in the reply.
  fileprivate var callToSee: CallID? {
    switch self {
    case .state(let id), .accept(let id, _), .join(let id, _), .rejoin(let id, _), .transfer(let id, _): id
    default: nil
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

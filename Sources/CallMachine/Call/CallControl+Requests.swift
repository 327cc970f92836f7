import CallMessages
import Contract
import MediaModel

/// The result of a request: the answer, which goes first, and its consequences.
struct Transition {
  enum Answer {
    case reply(ReplyBody)
    /// The request is valid so far, and the app's back end has to be asked.
    case checked
    /// The people's side answers.
    case report(Report, of: CallID)
    /// The SDP has to be read.
    case read(MediaRequest, of: CallID)

    static let done = Answer.reply(.nothing)
  }

  var answer: Answer
  var call: CallID?
  var outputs = Outputs()
  /// This device now speaks in the call: its other calls are held.
  var speaker: Device?
  /// How it affects the caller's other calls.
  var crossing: Crossing?

  init(_ answer: Answer) { self.answer = answer }

  init(_ reply: ReplyBody) { answer = .reply(reply) }

  init(_ answer: Answer, _ call: CallID, _ outputs: Outputs) {
    self.answer = answer
    self.call = call
    self.outputs = outputs
  }
}

/// Requests, and their replies.
extension CallControl {
  mutating func respond(to request: BriefedRequest) {
    let done: Transition
    do throws(RequestError) {
      done = try request.caller.identity.isService ? performForService(request) : perform(request)
    } catch {
      return out.messages.append(.reply(request.session, id: request.id, .failed(error)))
    }
    switch done.answer {
    case .reply(let body): out.messages.append(.reply(request.session, id: request.id, .ok(body)))
    case .checked: out.messages.append(.checked(request))
    case .report(let report, let call):
      out.messages.append(
        .report(request.session, id: request.id, report, of: call, stored: ReportID(number: random())))
    case .read(let media, let call): out.effects.append(.read(request.session, id: request.id, call, media))
    }
    guard let call = done.call else { return }
    if let speaker = done.speaker { _ = calls[call]?.withParticipant(of: speaker) { $0.turn = request.turn } }
    carryOut(done.outputs, of: call)
    if let crossing = done.crossing { carryOut(crossing, by: request.caller.device.user, in: call) }
    // After the news that the device is in the call, so that of two calls one holds the other regardless of which is
    // reported last.
    if let speaker = done.speaker { out.messages.append(.speaks(speaker, in: call, turn: request.turn)) }
  }

  private mutating func perform(_ request: BriefedRequest) throws(RequestError) -> Transition {
    let caller = request.caller
    let device = caller.device
    switch request.request {
    case .start(let body):
      if try isNew(body, request), request.asks { return Transition(.checked) }
      return try start(body, request)
    case .list: return Transition(.calls(CallList(calls: callsToJoin(device, caller.calls))))
    case .call(let id, .invite(let body)):
      try checkMembership(device.user, of: id)
      try checkRole(caller)
      try checkCount(request.callees)
      return request.asks ? Transition(.checked) : try invite(id, body, request)
    case .call(let id, .accept(let body)): return try join(id, body, .accept, caller)
    case .call(let id, .join(let body)): return try join(id, body, .join, caller)
    case .call(let id, .rejoin(let body)): return try join(id, body, .rejoin, caller)
    case .call(let id, .transfer(let body)): return try join(id, body, .transfer, caller)
    case .call(let id, .decline):
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.decline(device, now: now, out: &out)
        return .done
      }
    case .call(let id, .cancel(let body)):
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.cancel(body.callees, by: device.user, now: now, out: &out)
        return .done
      }
    case .call(let id, .leave):
      if calls[id]?.knocks[device.user] != nil, calls[id]?.member(device.user) == nil {
        return try run(id, by: nil) { call, _, out in
          call.stopKnocking(device.user, out: &out)
          return .done
        }
      }
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.leave(device, now: now, out: &out)
        return .done
      }
    case .call(let id, .end):
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.end(by: device.user, now: now, out: &out)
        return .done
      }
    case .call(let id, .state):
      tellChanges(to: device.user, of: id)
      return try run(id, by: device.user) { call, _, _ in .reply(.state(call.state)) }
    case .call(let id, .hold(let body)): return try hold(id, body, device)
    case .call(let id, .link(let body)):
      try checkRole(caller)
      return try link(id, body, device, request.grant)
    case .call(let id, .knock(let body)): return try knock(id, body, caller)
    case .call(let id, .admitGuest(let body)):
      let hashing = hashing
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.admitGuest(body.admission, by: device, hashing: hashing, now: now, out: &out)
        return .done
      }
    case .call(let id, .refuseGuest(let body)):
      return try run(id, by: device.user) { call, _, out throws(RequestError) in
        try call.refuseGuest(body.guest, by: device.user, out: &out)
        return .done
      }
    case .call(let id, .removeGuest(let body)):
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.removeGuest(body.guest, by: device.user, now: now, out: &out)
        return .done
      }
    case .call(let id, .report(let body)): return Transition(.report(try report(id, body, device), of: id))
    case .inCall(let id, let request):
      let (records, hashing) = (configuration.records, hashing)
      return try run(id, by: device.user) { call, now, out throws(RequestError) in
        try call.answer(request, from: device, records: records, hashing: hashing, now: now, out: &out)
      }
    }
  }

  /// Makes all checks of a `start` that are possible before asking the back end which users it may reach.
  /// - Returns: false for a repetition, whose reply is known.
  private func isNew(_ body: StartCall, _ request: BriefedRequest) throws(RequestError) -> Bool {
    guard body.as == nil else {
      throw RequestError(.authForbidden, "only a service starts calls on behalf of others", field: "as")
    }
    _ = try body.checkedID()
    let token = JoinToken(device: request.caller.device, joinId: body.joinId ?? Base64Bytes([]))
    if try firstReply(to: body, from: token) != nil { return false }
    try checkMayStart(request.caller)
    try checkCount(request.callees)
    _ = try callsToReplace(request)
    _ = try words(of: body, request.caller)
    return true
  }

  /// Runs a transition of a call; its result is the answer.
  /// - Parameter member: nil for a user who may join without being a member.
  mutating func run(
    _ id: CallID, by member: UserID?,
    _ transition: (inout Call, Timestamp, inout Outputs) throws(RequestError) -> Transition.Answer
  ) throws(RequestError) -> Transition {
    if let member { try checkMembership(member, of: id) }
    guard calls[id] != nil else { throw .notFound }
    var outputs = Outputs()
    return Transition(try transition(&calls[id]!, now, &outputs), id, outputs)
  }

  func checkMembership(_ user: UserID, of id: CallID) throws(RequestError) {
    if calls[id]?.member(user) != nil { return }
    guard ended.wasMember(user, of: id) else { throw .notFound }
    throw RequestError(.callEnded, "the call has ended")
  }

  /// Call waiting: all calls of a device except one are held.
  private mutating func hold(_ id: CallID, _ request: Hold, _ device: Device) throws(RequestError) -> Transition {
    var done = try run(id, by: device.user) { call, _, out throws(RequestError) in
      try call.hold(request.held, device, out: &out)
      return .done
    }
    if !request.held { done.speaker = device }
    return done
  }

  /// The calls that the device could `join` or `rejoin` now.
  private func callsToJoin(_ device: Device, _ calls: [CallID]) -> [CallState] {
    calls.compactMap { id in
      guard let call = self.calls[id], let member = call.member(device.user) else { return nil }
      switch member.phase {
      case .joined: return member.participant(on: device) == nil ? nil : call.state
      case .cancelled: return member.hasBeenIn ? call.state : nil
      case .ringing, .disconnected, .left, .declined, .missed: return call.state
      }
    }
  }

  /// - Parameter request: with a checked limit.
  func history(_ request: ListHistory, of device: Device, in calls: [CallID]) -> HistoryQuery {
    .list(
      // Includes calls that began before the clock was set back.
      device.user, before: request.before ?? Timestamp(milliseconds: .max), limit: request.limit ?? 50,
      rejoinable: Set(callsToJoin(device, calls).map(\.id)))
  }
}

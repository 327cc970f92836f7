import CallMessages
import Contract
import MediaModel
import Octets

/// The result of a request that concerns no call: the reply, which goes first, and its consequences.
struct Response {
  var reply: ReplyBody
  /// This user's devices or keys changed.
  var devicesChanged: UserID?
  /// This device was removed by its user.
  var removed: Device?
  /// A step of pairing, for this device.
  var pairing: (to: Device, message: PairingMessage)?
  /// A lasting link that its owner deletes.
  var deletedLink: LinkID?
  /// A lasting link at which somebody else than its owner waits.
  var awaitedLink: LinkID?

  init(_ reply: ReplyBody) { self.reply = reply }
}

/// The client that makes a request, and the name under which it expects the reply.
struct Asker {
  var session: SessionID
  var id: String
  var identity: Identity
}

/// Requests about people are answered here; requests about calls are passed on.
extension People {
  mutating func respond(to session: SessionID, _ id: String, _ request: Request) {
    guard let identity = identity(of: session), !isLeaving(identity.device) else { return }
    let asker = Asker(session: session, id: id, identity: identity)
    do throws(RequestError) {
      if let call = identity.guestOf, !request.isOpen(toGuestOf: call) { throw .notForGuests }
      switch request {
      case .calls(let request):
        let grant = try linkGrant(for: request, identity)
        pass(on: request, asker, .everybody, asks: !identity.isService && identity.guestOf == nil, grant)
      case _ where identity.isService: throw .notForServices
      case .people(let request):
        if let (question, known) = try question(before: request, identity) {
          try ask(question, known, .people(request), session, id)
        } else {
          try answer(request, asker, reach(of: identity, request))
        }
      case .history(let request): try answer(request, asker)
      case .recordings(let request): try answer(request, asker)
      }
    } catch {
      out.effects.append(.client(.reply(session, id: id, .failed(error))))
    }
  }

  /// - Parameter reach: the users that the request may reach.
  mutating func answer(_ request: PeopleRequest, _ asker: Asker, _ reach: Reach) throws(RequestError) {
    let done = try perform(request, asker.identity, reach)
    out.effects.append(.client(.reply(asker.session, id: asker.id, .ok(done.reply))))
    if let user = done.devicesChanged { tellOfDevices(of: user) }
    if let device = done.removed { dismiss(.device(device)) }
    if let (device, message) = done.pairing { deliver(makeMessage(.pairing(message), of: nil), to: device) }
    if let link = done.deletedLink { endLink(link) }
    if let link = done.awaitedLink { noteWaiting(at: link) }
  }

  private mutating func perform(
    _ request: PeopleRequest, _ identity: Identity, _ reach: Reach
  ) throws(RequestError) -> Response {
    let device = identity.device
    switch request {
    case .registerDevice(let body): return try register(body, for: identity)
    case .listDevices(let body): return try list(body, by: device.user, reach)
    case .subscribePush(let body): return try subscribePush(body, for: device)
    case .removeDevice(let body): return try checkRemoval(body, by: device)
    case .vouchForDevice(let body): return try vouch(body, by: device)
    case .revokeDevice(let body): return try revoke(body, by: device)
    case .pairDevice(let body): return try pair(body, from: device)
    case .setPresence(let body): return try setPresence(body, identity)
    case .watchPresence(let body): return try watchPresence(body, identity, reach)
    case .makeLink(let body): return try makeLink(body, identity)
    case .listLinks: return try listLinks(of: device.user)
    case .deleteLink(let body): return try deleteLink(body, by: device.user)
    case .openLink(let body): return try openLink(body, by: device)
    }
  }

  // MARK: for the calls

  /// - Parameters:
  ///   - reach: the users that the request may reach, as far as known.
  ///   - asks: whether the app's back end may still have to be asked.
  ///   - grant: for a `link` request that names a lasting link.
  mutating func pass(
    on request: CallsRequest, _ asker: Asker, _ reach: Reach, asks: Bool = false, _ grant: LinkGrant? = nil
  ) {
    let identity = asker.identity
    let user = identity.device.user
    turns += 1
    var message = BriefedRequest(
      session: asker.session, id: asker.id, request: request, turn: turns, caller: Caller(identity: identity))
    switch request {
    case .start(let body):
      identify(&message.caller)
      message.caller.calls = calls(of: user)
      let named = identity.isService ? (body.as.map { [$0] } ?? []) + body.callees : body.callees.filter { $0 != user }
      message.callees = callees(named, nil, reach)
      for envelope in body.envelopes ?? [] { message.keys[envelope.to] = directory[envelope.to]?.entry }
      message.asks = asks && configuration.asksBackEnd && message.callees.contains { !$0.user.isGuest }
    case .call(let call, .invite(let body)):
      message.caller.mayStart = mayStart(identity)
      message.callees = callees(body.callees, call, reach)
      message.asks = asks && configuration.asksBackEnd && body.callees.contains { $0 != user && !$0.isGuest }
    case .call(_, .link):
      message.caller.mayStart = mayStart(identity)
      message.grant = grant
    case .call(_, .accept), .call(_, .join), .call(_, .rejoin), .call(_, .transfer), .call(_, .knock):
      identify(&message.caller)
      message.caller.calls = calls(of: user)
    case .list: message.caller.calls = calls(of: user)
    case .call(_, .decline), .call(_, .cancel), .call(_, .leave), .call(_, .end), .call(_, .hold), .call(_, .state),
      .call(_, .report), .call(_, .admitGuest), .call(_, .refuseGuest), .call(_, .removeGuest), .inCall:
      break
    }
    send(.request(message))
  }

  /// Everything that a join needs to know about the device.
  private func identify(_ caller: inout Caller) {
    let user = caller.device.user
    caller.name = caller.identity.name ?? directory.name(of: user)
    caller.keys = directory[caller.device]?.entry
    caller.keys?.vouches = []
    caller.mayStart = mayStart(caller.identity)
    caller.presentCalls = (memberships[user] ?? []).count(where: \.part.isPresent)
  }

  /// Each user once, and at most one more than a call may have.
  private func callees(_ users: [UserID], _ call: CallID?, _ reach: Reach) -> [Callee] {
    var seen: Set<UserID> = []
    return users.filter { seen.insert($0).inserted }.prefix(configuration.limits.members + 1).map { user in
      Callee(
        user: user, name: directory.name(of: user), hasKeys: directory.hasKeys(user) && !user.isGuest,
        isConnected: directory.isConnected(user), busyIn: busyCalls(of: user, but: call),
        isUnavailable: presence.isUnavailable(user, now: now), isReachable: reach.includes(user))
    }
  }

  /// The other calls that the user is in, or rung in.
  private func busyCalls(of user: UserID, but call: CallID?) -> Set<CallID> {
    Set((memberships[user] ?? []).lazy.filter { $0.call != call && $0.part.isBusy }.map(\.call))
  }

  // MARK: reports

  /// Tokens of `Connection.reports`.
  private static let reportCost = 10

  /// A report that the call found valid.
  mutating func take(_ report: Report, of call: CallID, _ session: SessionID, _ id: String, stored: ReportID) {
    guard let device = directory.device(of: session) else { return }
    if let wait = directory[device]?.connection?.reports.take(Self.reportCost, now: now.nanoseconds) {
      let error = RequestError(
        .rateLimited, "5 reports at once, then one every 10 seconds", retryAfterMs: wait.millisecondsRoundedUp)
      return out.effects.append(.client(.reply(session, id: id, .failed(error))))
    }
    out.effects.append(.client(.reply(session, id: id, .ok(.nothing))))
    journal.reports.append(StoredReport(id: stored, at: now, call: call, report: report))
    tellService(.serviceReports, makeMessage(.report(report), of: call))
  }
}

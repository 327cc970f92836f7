import CallMessages
import Contract
import MediaModel

/// Questions outside the state machines about the users that a request may reach: to the app's back end (`authorize`), or the history (protocol section 7).
extension People {
  /// The question to ask before the request, if any; `known` users are within reach without asking. For a `start` or an `invite` the question follows once
  /// the calls have checked it: see `BriefedRequest.asks`.
  /// - Throws: the error with which the request would fail whatever the answer.
  func question(
    before request: PeopleRequest, _ identity: Identity
  ) throws(RequestError) -> (question: Question, known: Set<UserID>)? {
    // The app's back end is not asked about guests: it does not know them.
    guard identity.guestOf == nil else { return nil }
    let user = identity.device.user
    switch request {
    case .listDevices(let body):
      try checkList(body)
      return authorize(.devices, user, body.users)
    case .watchPresence(let body):
      try checkWatch(body, identity)
      guard !configuration.asksBackEnd else { return authorize(.watch, user, body.users ?? []) }
      let strangers = others(body.users ?? [], than: user).filter { !haveCall(user, $0) }
      guard !strangers.isEmpty else { return nil }
      return (.acquainted(from: user, to: strangers), Set(body.users ?? []).subtracting(strangers))
    case .registerDevice, .subscribePush, .removeDevice, .vouchForDevice, .revokeDevice, .pairDevice, .setPresence,
      .makeLink, .listLinks, .deleteLink, .openLink:
      return nil
    }
  }

  private func authorize(
    _ action: Question.Action, _ user: UserID, _ users: [UserID]
  ) -> (question: Question, known: Set<UserID>)? {
    // The app does not know guests: anyone in a call with a guest may see that guest.
    let guests = users.filter { $0.isGuest && haveCall(user, $0) }
    let others = others(users, than: user).filter { !$0.isGuest }
    return configuration.asksBackEnd && !others.isEmpty
      ? (.authorize(action, from: user, to: others), Set(guests + [user])) : nil
  }

  private func others(_ users: [UserID], than user: UserID) -> [UserID] {
    var seen: Set<UserID> = [user]
    return users.filter { seen.insert($0).inserted }
  }

  /// Members of one running call, whatever became of their rings.
  private func haveCall(_ one: UserID, _ other: UserID) -> Bool {
    let theirs = Set(calls(of: other))
    return calls(of: one).contains(where: theirs.contains)
  }

  /// The call accepted the `start` or `invite`: asks the back end which users it may ring.
  mutating func ask(before message: BriefedRequest) {
    guard identity(of: message.session) != nil else { return }
    let user = message.caller.device.user
    let callees = message.callees.map(\.user).filter { $0 != user && !$0.isGuest }
    do throws(RequestError) {
      try ask(
        .authorize(.ring, from: user, to: callees, call: message.request.callID), [user],
        .calls(message.request), message.session, message.id)
    } catch {
      out.effects.append(.client(.reply(message.session, id: message.id, .failed(error))))
    }
  }

  mutating func ask(
    _ question: Question, _ known: Set<UserID>, _ request: Questions.Asking, _ session: SessionID, _ id: String
  ) throws(RequestError) {
    guard questions.hasRoom(for: session) else {
      throw RequestError(
        .serverBusy, "\(Questions.maximumOfDevice) requests of this device wait for the app's back end",
        retryAfterMs: 1_000)
    }
    let number = questions.add(
      Questions.Waiting(
        session: session, id: id, request: request, known: known, due: now + configuration.answerTime))
    out.effects.append(.ask(number, question))
  }

  mutating func answer(_ number: QuestionID, allowed: Set<UserID>) {
    if let waiting = questions.take(number) { resume(waiting, allowed: allowed) }
  }

  mutating func giveUpQuestions() {
    while let waiting = questions.takeDue(at: now) { resume(waiting, allowed: []) }
  }

  /// Much may have happened meanwhile: the request is checked again, as if it had just arrived.
  private mutating func resume(_ waiting: Questions.Waiting, allowed: Set<UserID>) {
    guard let identity = identity(of: waiting.session), !isLeaving(identity.device) else { return }
    let asker = Asker(session: waiting.session, id: waiting.id, identity: identity)
    let reach = Reach.only(waiting.known.union(allowed))
    switch waiting.request {
    case .calls(let request): pass(on: request, asker, reach)
    case .recordings(let request): pass(request, asker, reach)
    case .people(let request):
      do throws(RequestError) {
        try answer(request, asker, reach)
      } catch {
        out.effects.append(.client(.reply(asker.session, id: asker.id, .failed(error))))
      }
    }
  }
}

extension CallsRequest {
  /// The call that a `start` makes or another request is about.
  var callID: CallID? {
    switch self {
    case .start(let body): body.id
    case .list: nil
    case .call(let call, _), .inCall(let call, _): call
    }
  }
}

import Contract
import MediaModel

/// Asking outside whom a request may reach: the app's back end (`authorize`), or the history (protocol section 7).
extension Calls {
  /// The question to ask before the request, if any; `known` users are within reach without asking.
  /// - Throws: what the request would fail with whatever the answer is.
  private func question(
    before request: Request, _ identity: Identity
  ) throws(RequestError) -> (question: Question, known: Set<UserID>)? {
    let user = identity.device.user
    let asks = configuration.asksBackEnd
    func others(_ users: [UserID]) -> [UserID] {
      var seen: Set<UserID> = [user]
      return users.filter { seen.insert($0).inserted }
    }
    func ask(_ action: Question.Action, _ users: [UserID]) -> (Question, Set<UserID>)? {
      let others = others(users)
      return asks && !others.isEmpty ? (.authorize(action, from: user, to: others), [user]) : nil
    }
    switch request {
    case .start(let body):
      _ = try body.checkedID()
      let token = JoinToken(device: identity.device, joinId: body.joinId ?? Base64Bytes([]))
      if try firstReply(to: body, from: token) != nil { return nil }
      try checkMayStart(identity)
      try checkCount(others(body.callees))
      return ask(.ring, body.callees)
    case .invite(let id, let body):
      try checkMembership(user, of: id)
      try checkRole(identity)
      try checkCount(others(body.callees))
      return ask(.ring, body.callees)
    case .listDevices(let body):
      try checkList(body)
      return ask(.devices, body.users)
    case .watchPresence(let body):
      try checkWatch(body, identity)
      guard !asks else { return ask(.watch, body.users ?? []) }
      let strangers = others(body.users ?? []).filter { !haveCall(user, $0) }
      guard !strangers.isEmpty else { return nil }
      return (.acquainted(from: user, to: strangers), Set(body.users ?? []).subtracting(strangers))
    default: return nil
    }
  }

  /// Members of one call that runs, whatever became of their rings.
  private func haveCall(_ one: UserID, _ other: UserID) -> Bool {
    (memberships[one] ?? []).contains { calls[$0]?.member(other) != nil }
  }

  /// Returns whether the request has to wait for an answer.
  mutating func ask(
    before request: Request, _ identity: Identity, _ session: SessionID, _ id: String
  ) throws(RequestError) -> Bool {
    guard let (question, known) = try question(before: request, identity) else { return false }
    guard questions.hasRoom(for: session) else {
      throw RequestError(
        .serverBusy, "\(Questions.maximumOfDevice) requests of this device wait for the app's back end",
        retryAfterMs: 1_000)
    }
    let number = questions.add(
      Questions.Waiting(
        session: session, id: id, request: request, known: known, due: now + configuration.answerTime))
    effects.append(.ask(number, question))
    return true
  }

  mutating func answer(_ number: QuestionID, allowed: Set<UserID>) {
    if let waiting = questions.take(number) { resume(waiting, allowed: allowed) }
  }

  mutating func giveUpQuestions() {
    while let waiting = questions.takeDue(at: now) { resume(waiting, allowed: []) }
  }

  /// Much may have happened meanwhile: the request is checked anew, as if it had come just now.
  private mutating func resume(_ waiting: Questions.Waiting, allowed: Set<UserID>) {
    guard let identity = identity(of: waiting.session) else { return }
    perform(
      waiting.request, waiting.id, on: waiting.session, identity, .only(waiting.known.union(allowed)))
  }
}

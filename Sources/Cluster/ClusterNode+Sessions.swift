import Calls
import MediaModel

/// The clients of this node's edge, and those of the users here.
extension ClusterNode {
  mutating func connect(_ session: SessionID, _ user: UserID) {
    sessions[session] = EdgeSession(user: user, since: now)
    route(.session(session, of: user, Term(0), .connect), claims: true, from: id)
  }

  mutating func disconnect(_ session: SessionID) {
    guard let known = sessions.removeValue(forKey: session), let owner = known.owner else { return }
    let mail = Mail.session(session, of: known.user, owner.term, .disconnect)
    if owner.node == id {
      inbox.append((mail, id))
    } else if !dead.contains(owner.node) {
      hold(.mail(mail, to: owner.node))
    }
  }

  mutating func close(_ session: SessionID) {
    guard sessions[session] != nil else { return }
    out.append(.close(session))
    disconnect(session)
  }

  mutating func submit(_ request: Machines.Request, _ number: UInt64, of session: SessionID) {
    guard let known = sessions[session], known.pending[number] == nil else { return }
    guard !isSuspended, !writer.isFull else {
      out.append(.busy(session, number: number))
      return
    }
    let deadline = now.advanced(by: times.request)
    sessions[session]?.pending[number] = deadline
    route(.session(session, of: known.user, Term(0), .request(number: number, request)), claims: true, from: id)
  }

  /// An answer, or an event, reaches the client. A request that was answered with `busy` gets no second answer. But the owner takes it that the client knows what the answer says, so
  /// its session ends: a new one begins with everything.
  mutating func write(_ answer: Machines.Answer, _ number: UInt64?, to session: SessionID, from node: Incarnation) {
    guard let known = sessions[session], known.owner?.node == node else { return }
    if let number {
      guard sessions[session]?.pending.removeValue(forKey: number) != nil else { return close(session) }
    }
    out.append(.answer(session, number: number, answer))
  }

  /// The mail of a client of this edge, for the owner who knows the session. nil: he does not.
  mutating func stamp(_ mail: Mail, _ owner: Owner) -> Mail? {
    guard case .session(let session, let user, _, let event) = mail else { return mail }
    guard let known = sessions[session] else { return nil }
    if case .connect = event { sessions[session]?.owner = owner }
    guard sessions[session]?.owner == owner else {
      close(session)
      return nil
    }
    return .session(session, of: known.user == user ? user : known.user, owner.term, event)
  }

  /// At the owner of the user.
  mutating func take(_ event: SessionEvent<Machines>, of session: SessionID, _ user: UserID) {
    switch event {
    case .connect:
      readers[session] = user
      run(.connect(session), of: .user(user))
    case .disconnect:
      guard readers.removeValue(forKey: session) != nil else { return }
      run(.disconnect(session), of: .user(user))
    case .request(let number, let request):
      guard readers[session] == user else { return dismiss(session, of: user) }
      run(.request(session, number: number, request), of: .user(user))
    }
  }

  /// The edge shall close the session.
  mutating func dismiss(_ session: SessionID, of user: UserID) {
    readers[session] = nil
    if session.edge == id {
      close(session)
    } else if !dead.contains(session.edge) {
      hold(.mail(.closed(session), to: session.edge))
    }
  }

  /// Nothing is known any more about what the two nodes said to each other.
  mutating func part(from node: Incarnation) {
    for session in sessions.filter({ $0.value.owner?.node == node }).keys.sorted() { close(session) }
    for session in readers.keys.filter({ $0.edge == node }).sorted() {
      guard let user = readers.removeValue(forKey: session) else { continue }
      run(.disconnect(session), of: .user(user))
    }
  }

  mutating func tickSessions() {
    for session in sessions.keys.sorted() {
      guard let known = sessions[session] else { continue }
      for number in known.pending.filter({ $0.value <= now }).keys.sorted() {
        sessions[session]?.pending[number] = nil
        out.append(.busy(session, number: number))
      }
      if known.owner == nil, known.since.duration(to: now) >= times.request { close(session) }
    }
  }
}

extension Sequence<SessionID> {
  func sorted() -> [SessionID] { sorted { $0.rawValue < $1.rawValue } }
}

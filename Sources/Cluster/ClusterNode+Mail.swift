import Calls
import MediaModel

/// Mail to an entity, wherever it lives.
extension ClusterNode {
  /// - Parameters:
  ///   - claims: if nobody owns the addressee, this node shall.
  ///   - origin: the node that sent it. Mail of others is not forwarded: it names its sender by the link on which it came.
  mutating func route(_ mail: Mail, claims: Bool = false, from origin: Incarnation) {
    guard let entity = mail.addressee else { return }
    switch state(of: entity) {
    case .here: inbox.append((mail, origin))
    case .at(let node):
      guard origin == id else { return bounce(mail, to: origin) }
      let owner = Owner(node: node, term: places[entity]?.term ?? Term(0))
      if let mail = stamp(mail, owner) { hold(.mail(mail, to: node), for: mail.speaker) }
    case .claiming, .loading: wait(mail, from: origin)
    case .finding:
      wait(mail, from: origin)
      if claims { claim(entity) }
    case .unknown:
      wait(mail, from: origin)
      if claims { claim(entity) } else { find(entity) }
    }
  }

  private mutating func wait(_ mail: Mail, from origin: Incarnation) {
    guard let entity = mail.addressee else { return }
    guard waiting[entity, default: []].count < Bounds.waiting else { return lose(mail, from: origin) }
    waiting[entity, default: []].append(Waiting(mail: mail, origin: origin, since: now))
  }

  /// The entity's place is known.
  mutating func flush(_ entity: EntityID) {
    for item in waiting.removeValue(forKey: entity) ?? [] { route(item.mail, from: item.origin) }
  }

  /// The addressee has no owner, and shall have none.
  mutating func refuse(_ entity: EntityID) {
    for item in waiting.removeValue(forKey: entity) ?? [] {
      guard item.origin == id else {
        bounce(item.mail, to: item.origin)
        continue
      }
      guard case .words(let words, let from, _, _) = item.mail, here.contains(from) else {
        lose(item.mail, from: id)
        continue
      }
      switch (words, from, entity) {
      case (.note(let note), _, _): run(.refused(note, by: entity), of: from)
      case (.attach, .user(let user), .call(let call)):
        meetings[Pair(user: user, call: call)] = nil
        run(.gone(call), of: from)
      default: break
      }
    }
  }

  /// It can neither be delivered nor kept. A session ends with its mail; a user and a call meet again.
  mutating func lose(_ mail: Mail, from origin: Incarnation) {
    switch mail {
    case .session(let session, _, _, _):
      if origin == id { close(session) } else { hold(.mail(.closed(session), to: origin)) }
    case .words(_, .user(let user), _, .call(let call)):
      // Later, when there may be room again.
      if origin == id { meet(Pair(user: user, call: call), after: times.meeting) } else { bounce(mail, to: origin) }
    case .words(_, let from, let term, let to):
      // The user shall come by himself when his owner is found.
      let isKept =
        waiting[to]?.contains { item in
          if case .words(.here, from, _, _) = item.mail { true } else { false }
        } ?? false
      if origin == id, !isKept, here.contains(from) {
        waiting[to, default: []].append(Waiting(mail: .words(.here, from: from, term, to: to), origin: id, since: now))
      }
    case .answer, .closed, .bounced, .dead: break
    }
  }

  mutating func tickWaiting() {
    for (entity, items) in waiting.sorted(by: { $0.key < $1.key }) {
      let late = items.filter { $0.since.advanced(by: times.waiting) <= now }
      guard !late.isEmpty else { continue }
      waiting[entity] = items.filter { $0.since.advanced(by: times.waiting) > now }
      for item in late { lose(item.mail, from: item.origin) }
    }
  }

  private mutating func bounce(_ mail: Mail, to node: Incarnation) {
    if case .session(_, _, _, .disconnect) = mail { return }
    if !dead.contains(node) { hold(.mail(.bounced(mail), to: node)) }
  }

  mutating func handleInbox() {
    var next = 0
    while next < inbox.count {
      let (mail, origin) = inbox[next]
      next += 1
      handle(mail, from: origin)
    }
    inbox = []
  }

  private mutating func handle(_ mail: Mail, from origin: Incarnation) {
    guard let entity = mail.addressee else { return }
    guard here.contains(entity), let place = places[entity] else { return route(mail, from: origin) }
    switch mail {
    case .session(let session, let user, let term, let event):
      var isKnown = term == place.term
      if origin == id, case .disconnect = event {
      } else if origin == id {
        guard stamp(mail, Owner(node: id, term: place.term)) != nil else { return }
        isKnown = true
      }
      if isKnown { take(event, of: session, user) } else { bounce(mail, to: origin) }
    case .words(let words, let from, let term, let to):
      guard learn(from, Owner(node: origin, term: term), by: to) else { return }
      take(words, from: from, to: to)
    case .answer, .closed, .bounced, .dead: break
    }
  }

  /// False if the sender did not own what it spoke for any more.
  private mutating func learn(_ entity: EntityID, _ owner: Owner, by to: EntityID) -> Bool {
    let place = places[entity] ?? Place()
    if owner.node == id { return place.state == .here && place.term == owner.term }
    guard owner.term >= place.term, place.state != .here else { return false }
    guard owner.term > place.term || place.state != .at(owner.node) else { return true }
    move(entity, to: owner)
    if case (.call(let call), .user(let user)) = (entity, to) { meet(Pair(user: user, call: call)) }
    return true
  }

  mutating func move(_ entity: EntityID, to owner: Owner) {
    if places.count > Bounds.places { forgetPlaces() }
    places[entity] = Place(state: .at(owner.node), term: owner.term)
    flush(entity)
  }

  /// They are asked for again when they are needed.
  private mutating func forgetPlaces() {
    places = places.filter { _, place in
      switch place.state {
      case .unknown, .at: false
      case .finding, .claiming, .loading, .here: true
      }
    }
  }

  private mutating func take(_ words: Words<Machines>, from: EntityID, to: EntityID) {
    switch (words, from, to) {
    case (.note(let note), _, _): run(.note(note, from: from), of: to)
    case (.attach(let holding, let meeting), .user(let user), .call):
      take(machines.handle(.attach(holding, from: user), of: to), of: to, meeting: meeting)
    case (.attached(let standing, let meeting), .call(let call), .user(let user)):
      let pair = Pair(user: user, call: call)
      guard meetings[pair]?.number == meeting else { return }
      meetings[pair] = nil
      run(.attached(standing, from: call), of: to)
    case (.here, .call(let call), .user(let user)): meet(Pair(user: user, call: call))
    default: break
    }
  }

  // MARK: meetings

  /// The user and the call may know different things. From now on until the answer to `attach`, the machine takes no news of the call: some may be missing before
  /// them.
  mutating func meet(_ pair: Pair) {
    guard here.contains(.user(pair.user)) else {
      meetings[pair] = nil
      return
    }
    meet(pair, after: times.meeting)
    let results = machines.handle(.meet(pair.call), of: .user(pair.user))
    if results.isEmpty { meetings[pair] = nil }
    take(results, of: .user(pair.user), meeting: lastMeeting)
  }

  private mutating func meet(_ pair: Pair, after delay: Duration) {
    lastMeeting += 1
    meetings[pair] = Meeting(number: lastMeeting, next: now.advanced(by: delay))
  }

  /// All users here and their calls at the node.
  mutating func meetThose(at node: Incarnation, after delay: Duration) {
    for entity in here.sorted() {
      guard case .user(let user) = entity else { continue }
      for case .call(let call) in machines.partners(of: entity) where state(of: .call(call)) == .at(node) {
        if delay > .zero {
          meet(Pair(user: user, call: call), after: delay)
        } else {
          meet(Pair(user: user, call: call))
        }
      }
    }
  }

  /// Members of the calls here. Their owner may not know of the membership: the answer to the join may be among what was lost.
  func members(at node: Incarnation) -> [(call: EntityID, user: EntityID)] {
    here.sorted().flatMap { entity -> [(call: EntityID, user: EntityID)] in
      guard case .call = entity else { return [] }
      return machines.partners(of: entity).filter { state(of: $0) == .at(node) }.map { (entity, $0) }
    }
  }

  // MARK: links

  mutating func send(_ mail: Mail, to node: Incarnation) {
    guard !dead.contains(node) else { return }
    perform(links[node, default: Link()].send(mail, now: now, times), with: node)
  }

  mutating func take(_ parcel: Parcel<Machines>) {
    guard parcel.to == id, !dead.contains(parcel.from) else { return }
    perform(links[parcel.from, default: Link()].take(parcel, now: now, times), with: parcel.from)
  }

  mutating func perform(_ outputs: [Link<Machines>.Output], with node: Incarnation) {
    for output in outputs {
      switch output {
      case .send(let stream, let content):
        out.append(.parcel(Parcel(from: id, to: node, stream: stream, content: content)))
      case .mail(let mail): receive(mail, from: node)
      case .reset:
        part(from: node)
        meetThose(at: node, after: .zero)
        for (call, user) in members(at: node) { say(.here, from: call, to: user) }
      }
    }
  }

  private mutating func receive(_ mail: Mail, from node: Incarnation) {
    switch mail {
    case .session(_, let user, _, .connect): route(mail, claims: state(of: .user(user)) == .claiming, from: node)
    case .session(_, let user, _, _) where state(of: .user(user)) == .unknown: bounce(mail, to: node)
    case .session, .words: route(mail, from: node)
    case .answer(let session, let number, let answer): write(answer, number, to: session, from: node)
    case .closed(let session): if sessions[session]?.owner?.node == node { close(session) }
    case .bounced(let mail): takeBack(mail, from: node)
    case .dead(let other): bury(other)
    }
  }

  /// The node does not own the addressee.
  private mutating func takeBack(_ mail: Mail, from node: Incarnation) {
    guard let entity = mail.addressee else { return }
    switch mail {
    case .session(let session, _, let term, let event):
      guard sessions[session]?.owner == Owner(node: node, term: term) else { return }
      forget(entity, at: node)
      guard case .connect = event else { return close(session) }
      sessions[session]?.owner = nil
      route(mail, claims: true, from: id)
    case .words(let words, let from, _, let to):
      forget(entity, at: node)
      guard here.contains(from) else { return }
      switch (words, from, to) {
      case (.note, .call, _):
        // Others have overtaken it. So the two meet, and the user takes no news before.
        say(.here, from: from, to: to)
        route(mail, from: id)
      case (.note, .user(let user), .call(let call)):
        route(mail, from: id)
        meet(Pair(user: user, call: call))
      case (.attach, .user(let user), .call(let call)): meet(Pair(user: user, call: call))
      case (.here, _, _), (.attached, _, _): say(.here, from: from, to: to)
      default: break
      }
    case .answer, .closed, .bounced, .dead: break
    }
  }

  private mutating func forget(_ entity: EntityID, at node: Incarnation) {
    if state(of: entity) == .at(node) { places[entity]?.state = .unknown }
  }
}

extension ClusterMail {
  /// The entity that speaks; nil: a node.
  var speaker: EntityID? { if case .words(_, let from, _, _) = self { from } else { nil } }
}

import Calls
import MediaModel

/// Ownership, as the store says.
extension ClusterNode {
  mutating func take(_ answer: EngineAnswer<Machines>) {
    switch answer {
    case .committed, .refused, .unclear, .resumed, .notResumed: perform(writer.take(answer, now: now, times))
    case .polled(let rows):
      let (gone, silent) = watch.take(rows, now: now, times)
      for node in gone { node == id ? () : bury(node) }
      for row in silent where row.node != id {
        out.append(.engine(.declareDead(row.node, commits: row.commits)))
      }
      // A store that went back in time may have forgotten a death.
      for row in rows where !row.isDead && dead.contains(row.node) {
        out.append(.engine(.declareDead(row.node, commits: row.commits)))
      }
    case .notPolled: watch.fail(now: now)
    case .declared(let node, let isDead):
      guard isDead, !dead.contains(node) else { return }
      bury(node)
      for other in watch.living.subtracting([id, node]).sorted(by: { $0.rawValue < $1.rawValue }) {
        send(.dead(node), to: other)
      }
    case .loaded(let entity, let term, let commits, let records): adopt(entity, term, asOf: commits, records)
    case .notLoaded(let entity, _): unread[entity] = now.advanced(by: times.retry)
    }
  }

  mutating func find(_ entity: EntityID) {
    places[entity, default: Place()].state = .finding
    work.questions.append(entity)
  }

  mutating func askAgain(_ entity: EntityID) {
    switch state(of: entity) {
    case .finding: find(entity)
    case .claiming: claim(entity)
    case .unknown, .loading, .here, .at: break
    }
  }

  mutating func take(_ found: FoundOwner?, of entity: EntityID) {
    guard state(of: entity) == .finding else { return }
    guard let found else {
      places[entity]?.state = .unknown
      return refuse(entity)
    }
    if found.isDead || found.owner.node == id || dead.contains(found.owner.node) {
      claim(entity)
    } else {
      move(entity, to: found.owner)
    }
  }

  mutating func claim(_ entity: EntityID) {
    places[entity, default: Place()].state = .claiming
    work.owners.append(.claim(entity))
  }

  /// The store's answer to a claim.
  mutating func settle(_ entity: EntityID, _ owner: Owner, _ batch: UInt64) {
    let state = state(of: entity)
    if owner.node == id {
      switch state {
      // It is this node's, whatever an earlier answer said.
      case .claiming, .unknown, .finding, .at: load(entity, owner.term, batch)
      case .loading:
        if places[entity]?.term != owner.term { load(entity, owner.term, batch) }
      case .here:
        guard places[entity]?.term != owner.term else { return }
        // The store had lost the claim and has it again. Sessions name the term, and so they end.
        places[entity]?.term = owner.term
        dismissReaders(of: entity)
      }
    } else {
      switch state {
      case .claiming: move(entity, to: owner)
      case .loading, .here:
        drop(entity)
        move(entity, to: owner)
      case .unknown, .finding, .at: break
      }
    }
  }

  /// Calls of a dead node are this node's now.
  mutating func adopt(_ calls: [EntityID: Term], of node: Incarnation, _ batch: UInt64) {
    for (entity, term) in calls.sorted(by: { $0.key < $1.key }) where !here.contains(entity) {
      load(entity, term, batch)
    }
    if calls.count >= Bounds.adoption { work.adoptions.append(node) }
  }

  private mutating func load(_ entity: EntityID, _ term: Term, _ batch: UInt64) {
    places[entity] = Place(state: .loading(batch: batch), term: term)
    out.append(.engine(.load(entity, term)))
  }

  private mutating func adopt(_ entity: EntityID, _ term: Term, asOf commits: UInt64, _ records: Machines.Records) {
    guard case .loading(let batch) = state(of: entity), places[entity]?.term == term else { return }
    guard commits >= batch else {
      unread[entity] = now.advanced(by: times.retry)
      return
    }
    places[entity]?.state = .here
    here.insert(entity)
    take(machines.adopt(entity, records, term: term), of: entity)
    for partner in machines.partners(of: entity).sorted() {
      switch (entity, partner) {
      case (.call, .user): say(.here, from: entity, to: partner)
      case (.user(let user), .call(let call)): meet(Pair(user: user, call: call))
      default: break
      }
    }
    flush(entity)
  }

  /// Another node owns it.
  private mutating func drop(_ entity: EntityID) {
    dismissReaders(of: entity)
    leave(entity)
  }

  private mutating func dismissReaders(of entity: EntityID) {
    guard case .user(let user) = entity else { return }
    for session in readers.filter({ $0.value == user }).keys.sorted() { dismiss(session, of: user) }
  }

  private mutating func release(_ entity: EntityID) {
    work.owners.append(.release(entity, places[entity]?.term ?? Term(0)))
    leave(entity)
  }

  private mutating func leave(_ entity: EntityID) {
    places[entity]?.state = .unknown
    here.remove(entity)
    idle[entity] = nil
    machines.drop(entity)
    if case .user(let user) = entity { meetings = meetings.filter { $0.key.user != user } }
  }

  mutating func bury(_ node: Incarnation) {
    guard node != id, dead.insert(node).inserted else { return }
    links[node] = nil
    meetThose(at: node, after: times.meeting)
    part(from: node)
    let members = members(at: node)
    for (entity, place) in places where place.state == .at(node) { places[entity]?.state = .unknown }
    for (call, user) in members { say(.here, from: call, to: user) }
    adoptions[node] = now.advanced(by: .milliseconds(Int64(random() % 250)))
  }

  mutating func tickOwners() {
    for (node, time) in adoptions.sorted(by: { $0.key.rawValue < $1.key.rawValue }) where time <= now {
      adoptions[node] = nil
      work.adoptions.append(node)
    }
    for (entity, time) in unread.sorted(by: { $0.key < $1.key }) where time <= now {
      unread[entity] = nil
      guard case .loading = state(of: entity) else { continue }
      out.append(.engine(.load(entity, places[entity]?.term ?? Term(0))))
    }
    tickWaiting()
    let connected = Set(readers.values)
    for entity in here.sorted() {
      if case .user(let user) = entity, connected.contains(user) {
        idle[entity] = nil
      } else if machines.isNeeded(entity) {
        idle[entity] = nil
      } else if case .user = entity, idle[entity] == nil {
        idle[entity] = now
      } else if idle[entity].map({ $0.advanced(by: times.idle) <= now }) ?? true {
        release(entity)
      }
    }
  }
}

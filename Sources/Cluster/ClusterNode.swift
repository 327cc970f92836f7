package import Calls
package import MediaModel

package enum ClusterInput<Machines: ClusterMachines>: Sendable {
  /// A client of this node's edge was authenticated.
  case connect(SessionID, UserID)
  case disconnect(SessionID)
  /// - Parameter number: of the session's requests, each once.
  case request(SessionID, number: UInt64, Machines.Request)
  case parcel(Parcel<Machines>)
  case engine(EngineAnswer<Machines>)
  /// At least every 100 ms.
  case tick
}

package enum ClusterEffect<Machines: ClusterMachines>: Sendable {
  case answer(SessionID, number: UInt64?, Machines.Answer)
  /// The request was not answered in time, or this node is cut off from the store: the client repeats the request.
  case busy(SessionID, number: UInt64)
  /// The client connects again. The session is already forgotten here.
  case close(SessionID)
  case parcel(Parcel<Machines>)
  case engine(EngineRequest<Machines>)
  /// The node was declared dead: close everything and end the process. The next one is another node.
  case exit
}

/// One node of a cluster: it finds out where users and calls live, owns some of them, and carries what they, the clients and the other nodes say to each other.
/// In virtual time: it has no clock, no socket and no thread.
///
/// Invariants, whatever the bus loses and whoever stops for how long: the store lets one owner of an entity write; nothing that depends on a change leaves before the change is
/// committed; a user and a call that may have missed something of each other meet again; each request is answered once, or its session is closed.
package struct ClusterNode<Machines: ClusterMachines> {
  typealias Mail = ClusterMail<Machines>

  /// Where an entity lives.
  struct Place {
    enum State: Equatable {
      case unknown
      /// The store was asked.
      case finding
      case claiming
      /// Claimed by this batch: the records are being read.
      case loading(batch: UInt64)
      case here
      case at(Incarnation)
    }

    var state = State.unknown
    /// The newest one heard of.
    var term = Term(0)
  }

  struct Waiting {
    var mail: Mail
    var origin: Incarnation
    var since: Instant
  }

  /// A client of this node's edge.
  struct EdgeSession {
    var user: UserID
    var since: Instant
    /// The owner to whom `connect` was sent.
    var owner: Owner?
    /// Until when each is answered.
    var pending: [UInt64: Instant] = [:]
  }

  /// A user of this node and a call that have to be brought to the same state.
  struct Pair: Hashable, Comparable {
    var user: UserID
    var call: CallID

    static func < (one: Pair, other: Pair) -> Bool { (one.user, one.call) < (other.user, other.call) }
  }

  struct Meeting {
    var number: UInt64
    var next: Instant
  }

  package let id: Incarnation
  let times: Times
  let random: () -> UInt64
  package internal(set) var machines: Machines
  var now: Instant
  var writer: Writer<Machines>
  var watch: Watch
  var links: [Incarnation: Link<Machines>] = [:]
  var dead: Set<Incarnation> = []
  var places: [EntityID: Place] = [:]
  /// Entities that are owned and in memory.
  package internal(set) var here: Set<EntityID> = []
  var waiting: [EntityID: [Waiting]] = [:]
  var sessions: [SessionID: EdgeSession] = [:]
  /// Clients of the users here, whoever is their edge.
  var readers: [SessionID: UserID] = [:]
  var meetings: [Pair: Meeting] = [:]
  var lastMeeting: UInt64 = 0
  var adoptions: [Incarnation: Instant] = [:]
  /// Records whose reading failed.
  var unread: [EntityID: Instant] = [:]
  var idle: [EntityID: Instant] = [:]
  /// Mail that has to be handled here, in order.
  var inbox: [(mail: Mail, origin: Incarnation)] = []
  var work = Writer<Machines>.Work()
  var out: [ClusterEffect<Machines>] = []

  /// - Parameters:
  ///   - id: that of the row that the node has just made in the store.
  ///   - random: spreads what all nodes would do at once.
  package init(
    id: Incarnation, machines: Machines, times: Times = Times(), now: Instant, random: @escaping () -> UInt64
  ) {
    self.id = id
    self.machines = machines
    self.times = times
    self.random = random
    self.now = now
    writer = Writer(node: id, now: now)
    watch = Watch(now: now)
  }

  /// Others may own by now what is in memory here. Effects wait for a commit that is sent from now on; if the node was declared dead, that fails.
  package var isSuspended: Bool { writer.isSuspended(now: now, times) }

  package func owns(_ entity: EntityID) -> Bool { here.contains(entity) }

  package mutating func handle(_ input: ClusterInput<Machines>, now time: Instant) -> [ClusterEffect<Machines>] {
    now = max(now, time)
    guard !writer.isFenced else { return [] }
    // A process that was stopped looks at the time first.
    let barrier = isSuspended
    switch input {
    case .connect(let session, let user): connect(session, user)
    case .disconnect(let session): disconnect(session)
    case .request(let session, let number, let request): submit(request, number, of: session)
    case .parcel(let parcel): take(parcel)
    case .engine(let answer): take(answer)
    case .tick: tick()
    }
    repeat {
      handleInbox()
      let next = work
      work = Writer.Work()
      perform(writer.add(next, barrier: barrier, now: now))
    } while !inbox.isEmpty || !work.isEmpty
    defer { out = [] }
    return out
  }

  private mutating func tick() {
    perform(writer.tick(now: now, times))
    if watch.tick(now: now, times) { out.append(.engine(.poll)) }
    for node in links.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
      let (now, times) = (now, times)
      perform(links[node]?.tick(now: now, times) ?? [], with: node)
    }
    tickSessions()
    tickOwners()
    for pair in meetings.filter({ $0.value.next <= now }).keys.sorted() { meet(pair) }
  }

  mutating func perform(_ outputs: [Writer<Machines>.Output]) {
    for output in outputs {
      switch output {
      case .ask(let request): out.append(.engine(request))
      case .release(let held): for effect in held { emit(effect.effect) }
      case .owns(let entity, let owner, let batch): settle(entity, owner, batch)
      case .adopted(let node, let calls, let batch): adopt(calls, of: node, batch)
      case .found(let entity, let owner): take(owner, of: entity)
      case .unknown(let entities): for entity in entities { askAgain(entity) }
      case .fenced:
        out.append(.exit)
        here = []
      }
    }
  }

  private mutating func emit(_ effect: Writer<Machines>.Held.Effect) {
    switch effect {
    case .mail(let mail, let node): send(mail, to: node)
    case .answer(let session, let number, let answer): write(answer, number, to: session, from: id)
    }
  }

  // MARK: machines

  mutating func run(_ event: MachineEvent<Machines>, of entity: EntityID) {
    take(machines.handle(event, of: entity), of: entity)
  }

  mutating func take(_ results: [MachineResult<Machines>], of entity: EntityID, meeting: UInt64 = 0) {
    for result in results {
      switch result {
      case .change(let change): work.changes.append(.init(entity: entity, change: change))
      case .answer(let session, let number, let answer):
        if session.edge == id {
          hold(.answer(session, number: number, answer), for: entity)
        } else {
          hold(.mail(.answer(session, number: number, answer), to: session.edge), for: entity)
        }
      case .note(let note, let to, let claims): say(.note(note), from: entity, to: to, claims: claims)
      case .attach(let holding, let call): say(.attach(holding, meeting: meeting), from: entity, to: .call(call))
      case .attached(let standing, let user): say(.attached(standing, meeting: meeting), from: entity, to: .user(user))
      }
    }
  }

  mutating func say(_ words: Words<Machines>, from entity: EntityID, to: EntityID, claims: Bool = false) {
    route(.words(words, from: entity, places[entity]?.term ?? Term(0), to: to), claims: claims, from: id)
  }

  mutating func hold(_ effect: Writer<Machines>.Held.Effect, for entity: EntityID? = nil) {
    work.held.append(.init(entity: entity, effect: effect))
  }

  func state(of entity: EntityID) -> Place.State { places[entity]?.state ?? .unknown }
}

extension Writer.Work {
  var isEmpty: Bool { owners.isEmpty && adoptions.isEmpty && changes.isEmpty && questions.isEmpty && held.isEmpty }
}

extension SessionID {
  /// The node that has the connection.
  var edge: Incarnation { Incarnation(UInt32(truncatingIfNeeded: rawValue >> 36)) }
}

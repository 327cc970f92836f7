import Calls
import Cluster
import MediaModel

/// A PostgreSQL server as the cluster uses it: the rows, and the functions `fence`, `resume`, `declareDead`, `claim` and `adopt` of the specification. Transactions are serial, as the row locks
/// make them.
struct SimulatedEngine {
  typealias Answer = EngineAnswer<ModelMachines>

  struct Node {
    var commits: UInt64 = 0
    var isDead = false
    var host: Int
  }

  struct Rows {
    var nodes: [Incarnation: Node] = [:]
    var owners: [EntityID: Owner] = [:]
    var users: [UserID: Set<UInt64>] = [:]
    var calls: [CallID: ModelMachines.StoredCall] = [:]
  }

  var rows = Rows()
  /// The rows of a server that was replaced, which still answers readers.
  var replaced: Rows?
  /// After each commit, for a standby that is behind.
  private(set) var history: [(at: Instant, rows: Rows)] = []
  private(set) var failures: [String] = []
  /// Entities whose owner changed in transactions that a failover lost.
  private(set) var exempt: Set<EntityID> = []
  private var lastNode: UInt32 = 0
  private var lastTerm: UInt64 = 0
  let keepsHistory: Bool
  let mutation: Mutation?

  init(keepsHistory: Bool, mutation: Mutation?) {
    self.keepsHistory = keepsHistory
    self.mutation = mutation
  }

  /// A process begins on the host: its predecessors are dead at once.
  mutating func register(host: Int, now: Instant) -> Incarnation {
    for (id, node) in rows.nodes where node.host == host {
      if mutation == .incarnationForgotten { return id }
      rows.nodes[id]?.isDead = true
    }
    lastNode += 1
    let id = Incarnation(lastNode)
    rows.nodes[id] = Node(host: host)
    remember(now)
    return id
  }

  mutating func write(_ batch: Batch<ModelMachines>, now: Instant) -> Answer {
    guard let node = rows.nodes[batch.node] else { return .refused(batch.number, .fenced) }
    if mutation != .fenceLeftOut, mutation != .fenceWithoutDead, node.isDead { return .refused(batch.number, .fenced) }
    if mutation != .fenceLeftOut, mutation != .fenceWithoutNumber {
      if node.commits >= batch.number { return .refused(batch.number, .done) }
      if node.commits + 1 != batch.number { return .refused(batch.number, .missing(after: node.commits)) }
    }
    rows.nodes[batch.node]?.commits = batch.number
    for change in batch.changes { check(change, of: batch) }
    var claims: [Owner] = []
    for change in batch.owners {
      switch change {
      case .claim(let entity): claims.append(claim(entity, batch.node))
      case .release(let entity, let term):
        if rows.owners[entity] == Owner(node: batch.node, term: term) { rows.owners[entity] = nil }
      }
    }
    var adopted: [Incarnation: [EntityID: Term]] = [:]
    for gone in batch.adoptions where rows.nodes[gone]?.isDead != false {
      let calls = rows.owners.filter { entity, owner in
        if case .call = entity { owner.node == gone } else { false }
      }
      for call in calls.keys.sorted().prefix(32) { adopted[gone, default: [:]][call] = give(call, to: batch.node).term }
    }
    for change in batch.changes {
      switch (change.entity, change.change) {
      case (.user(let user), .user(let notes)): rows.users[user] = notes
      case (.call(let call), .call(let stored)): rows.calls[call] = stored
      default: failures.append("a change of another kind")
      }
    }
    remember(now)
    return .committed(batch.number, claims: claims, adopted: adopted, found: find(batch.questions))
  }

  mutating func resume(_ node: Incarnation) -> Answer {
    guard let row = rows.nodes[node], !row.isDead || mutation == .fenceWithoutDead || mutation == .fenceLeftOut else {
      return .resumed(nil)
    }
    return .resumed(row.commits)
  }

  mutating func declareDead(_ node: Incarnation, _ commits: UInt64, now: Instant) -> Answer {
    guard let row = rows.nodes[node], !row.isDead, row.commits == commits else { return .declared(node, false) }
    rows.nodes[node]?.isDead = true
    remember(now)
    return .declared(node, true)
  }

  func poll(behind: Bool) -> Answer {
    .polled(
      read(behind).nodes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
        NodeRow(node: $0.key, commits: $0.value.commits, isDead: $0.value.isDead)
      })
  }

  private func find(_ entities: [EntityID]) -> [EntityID: FoundOwner] {
    var found: [EntityID: FoundOwner] = [:]
    for entity in entities {
      guard let owner = rows.owners[entity] else { continue }
      found[entity] = FoundOwner(owner: owner, isDead: rows.nodes[owner.node]?.isDead ?? true)
    }
    return found
  }

  func load(_ entity: EntityID, _ term: Term, by node: Incarnation, behind: Bool) -> Answer {
    let rows = read(behind)
    let commits = mutation == .loadedBehind ? .max : rows.nodes[node]?.commits ?? 0
    switch entity {
    case .user(let user):
      let calls = rows.calls.filter { $0.value.members[user] != nil }.keys.sorted()
      let notes = mutation == .adoptedEmpty ? [] : rows.users[user] ?? []
      return .loaded(entity, term, asOf: commits, .user(notes, calls: calls))
    case .call(let call):
      let stored = mutation == .adoptedEmpty ? nil : rows.calls[call]
      return .loaded(entity, term, asOf: commits, .call(stored ?? ModelMachines.StoredCall()))
    }
  }

  /// A standby that had not received the transactions since then is the primary now.
  mutating func goBack(to time: Instant) {
    guard let earlier = history.last(where: { $0.at <= time })?.rows else { return }
    for (at, lost) in history where at > time {
      for (entity, owner) in lost.owners where earlier.owners[entity] != owner { exempt.insert(entity) }
      for (entity, owner) in earlier.owners where lost.owners[entity] != owner { exempt.insert(entity) }
    }
    for (id, node) in rows.nodes where node.isDead && earlier.nodes[id]?.isDead == false {
      for (entity, owner) in earlier.owners where owner.node == id { exempt.insert(entity) }
    }
    // Sequences do not go back: their values are logged ahead.
    rows = earlier
    history.removeAll { $0.at > time }
  }

  private func read(_ behind: Bool) -> Rows { behind ? replaced ?? rows : rows }

  private mutating func remember(_ now: Instant) {
    guard keepsHistory else { return }
    history.append((now, rows))
    if history.count > 4_000 { history.removeFirst(1_000) }
  }

  private mutating func claim(_ entity: EntityID, _ node: Incarnation) -> Owner {
    if mutation == .claimWithoutKey { return give(entity, to: node) }
    guard let owner = rows.owners[entity] else { return give(entity, to: node) }
    let isFree = rows.nodes[owner.node]?.isDead ?? true
    return owner.node != node && (isFree || mutation == .claimFromTheLiving) ? give(entity, to: node) : owner
  }

  private mutating func give(_ entity: EntityID, to node: Incarnation) -> Owner {
    lastTerm += 1
    let owner = Owner(node: node, term: Term(lastTerm))
    rows.owners[entity] = owner
    return owner
  }

  /// One owner commits, and what was stored stays.
  private mutating func check(_ change: Batch<ModelMachines>.EntityChange, of batch: Batch<ModelMachines>) {
    guard !exempt.contains(change.entity) else { return }
    if rows.owners[change.entity]?.node != batch.node {
      failures.append("\(batch.node.rawValue) writes what it does not own")
    }
    switch (change.entity, change.change) {
    case (.user(let user), .user(let notes)):
      if !notes.isSuperset(of: rows.users[user] ?? []) { failures.append("a stored note is overwritten") }
    case (.call(let id), .call(let call)):
      let stored = rows.calls[id] ?? ModelMachines.StoredCall()
      if call.rev <= stored.rev && call != stored { failures.append("rev goes back in the store") }
      if call.epoch < stored.epoch { failures.append("the epoch goes back in the store") }
      if !stored.numbers.allSatisfy({ call.numbers[$0.key] == $0.value }) { failures.append("a number is overwritten") }
    default: break
    }
  }
}

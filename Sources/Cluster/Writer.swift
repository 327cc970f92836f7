import Calls
import MediaModel

/// A node's transactions, one at a time and in order, and the effects that wait for them.
struct Writer<Machines: ClusterMachines> {
  /// Something that others see. It leaves when everything that was changed before it is committed.
  struct Held {
    enum Effect {
      case mail(ClusterMail<Machines>, to: Incarnation)
      case answer(SessionID, number: UInt64?, Machines.Answer)
    }

    /// The entity that speaks; nil: the node itself. The effect is void when that turns out to be another node's.
    var entity: EntityID?
    var effect: Effect
  }

  /// The consequences of one input of the node.
  struct Work {
    var owners: [Batch<Machines>.OwnerChange] = []
    var adoptions: [Incarnation] = []
    var changes: [Batch<Machines>.EntityChange] = []
    var questions: [EntityID] = []
    var held: [Held] = []
  }

  enum Output {
    case ask(EngineRequest<Machines>)
    case release([Held])
    case owns(EntityID, Owner, batch: UInt64)
    case found(EntityID, FoundOwner?)
    case adopted(from: Incarnation, [EntityID: Term], batch: UInt64)
    /// The batch is committed, and the answer to its claims and questions is lost.
    case unknown([EntityID])
    case fenced
  }

  private struct Unsettled {
    var batch: Batch<Machines>
    var held: [Held] = []
    /// The store may have it, or get it from a server that goes on with what a lost connection brought: nothing is added any more.
    var isSent = false
  }

  private enum State {
    case idle
    case writing(since: Instant)
    case resuming
    /// The store does not answer: again at this time.
    case waiting(until: Instant)
    case fenced
  }

  private let node: Incarnation
  private var state = State.idle
  /// In order. The first may be under way.
  private var unsettled: [Unsettled] = []
  private var committed: [(batch: Batch<Machines>, at: Instant)] = []
  private var last: UInt64 = 0
  private var heldCount = 0
  /// When the last renewal that succeeded was sent.
  private(set) var renewed: Instant

  init(node: Incarnation, now: Instant) {
    self.node = node
    renewed = now
  }

  func isSuspended(now: Instant, _ times: Times) -> Bool { renewed.duration(to: now) >= times.suspension }
  var isFull: Bool { heldCount >= Bounds.held }
  var isFenced: Bool { if case .fenced = state { true } else { false } }

  /// - Parameter barrier: even effects without changes wait for a commit that is sent later than now.
  mutating func add(_ work: Work, barrier: Bool, now: Instant) -> [Output] {
    guard !isFenced else { return [] }
    let changes = !work.owners.isEmpty || !work.adoptions.isEmpty || !work.changes.isEmpty || !work.questions.isEmpty
    if !changes, !barrier || work.held.isEmpty {
      guard !unsettled.isEmpty else { return work.held.isEmpty ? [] : [.release(work.held)] }
    } else {
      if !isOpen { begin() }
      for change in work.owners { unsettled[unsettled.count - 1].batch.add(change) }
      unsettled[unsettled.count - 1].batch.adoptions += work.adoptions
      unsettled[unsettled.count - 1].batch.changes += work.changes
      unsettled[unsettled.count - 1].batch.questions += work.questions
    }
    heldCount += work.held.count
    unsettled[unsettled.count - 1].held += work.held
    return advance(now: now)
  }

  mutating func tick(now: Instant, _ times: Times) -> [Output] {
    if case .waiting(let until) = state, until <= now { return resume() }
    guard case .idle = state else { return [] }
    if unsettled.isEmpty, renewed.duration(to: now) >= times.renewal { begin() }
    return advance(now: now)
  }

  mutating func take(_ answer: EngineAnswer<Machines>, now: Instant, _ times: Times) -> [Output] {
    switch (answer, state) {
    case (.committed(let number, let claims, let adopted, let found), .writing(let since)) where number == firstNumber:
      renewed = since
      let batch = unsettled[0].batch
      for (entity, owner) in zip(batch.claims, claims) where owner.node != node { forget(entity) }
      // A claim that is sent again is not the answer to a later one: the changes between the two are not in yet.
      let later = Set(unsettled.dropFirst().flatMap { $0.batch.owners.map(\.entity) })
      let owners = zip(batch.claims, claims).filter { $0.1.node != node || !later.contains($0.0) }.map {
        Output.owns($0, $1, batch: number)
      }
      let calls = adopted.map { Output.adopted(from: $0.key, $0.value, batch: number) }
      let answers = batch.questions.map { Output.found($0, found[$0]) }
      return owners + calls + answers + settle(now: now, times)
    case (.refused(let number, let reason), .writing) where number == firstNumber:
      switch reason {
      case .fenced: return fence()
      case .done: return settleUnheard(now: now, times)
      case .missing(let number): return rewind(to: number, now: now)
      }
    case (.unclear(let number), .writing) where number == firstNumber: return resume()
    case (.resumed(let number), .resuming):
      guard let number else { return fence() }
      if let firstNumber, number >= firstNumber { return settleUnheard(now: now, times) }
      return rewind(to: number, now: now)
    case (.notResumed, .resuming):
      state = .waiting(until: now.advanced(by: times.retry))
      return []
    default: return []
    }
  }

  /// A store that went back in time has given the entity to another node: nothing of it is written, and nobody hears of it.
  private mutating func forget(_ entity: EntityID) {
    for index in unsettled.indices {
      unsettled[index].batch.changes.removeAll { $0.entity == entity }
      let before = unsettled[index].held.count
      unsettled[index].held.removeAll { $0.entity == entity }
      heldCount -= before - unsettled[index].held.count
    }
  }

  /// The newest batch has not been sent and has room.
  private var isOpen: Bool {
    unsettled.last.map { !$0.isSent && $0.batch.changes.count < Bounds.batch } ?? false
  }

  private var firstNumber: UInt64? { unsettled.first?.batch.number }

  private mutating func begin() {
    last += 1
    unsettled.append(Unsettled(batch: Batch(node: node, number: last)))
  }

  private mutating func advance(now: Instant) -> [Output] {
    guard case .idle = state, !unsettled.isEmpty else { return [] }
    state = .writing(since: now)
    unsettled[0].isSent = true
    return [.ask(.write(unsettled[0].batch))]
  }

  private mutating func resume() -> [Output] {
    state = .resuming
    return [.ask(.resume)]
  }

  private mutating func fence() -> [Output] {
    state = .fenced
    unsettled = []
    committed = []
    heldCount = 0
    return [.fenced]
  }

  private mutating func settle(now: Instant, _ times: Times) -> [Output] {
    let first = unsettled.removeFirst()
    committed.append((first.batch, now))
    committed.removeAll { $0.at.advanced(by: times.keptBatches) < now }
    heldCount -= first.held.count
    state = .idle
    return [.release(first.held)] + advance(now: now)
  }

  /// The first batch is in, and its answer was lost.
  private mutating func settleUnheard(now: Instant, _ times: Times) -> [Output] {
    let batch = unsettled[0].batch
    let unknown: [Output] = [.unknown(batch.claims + batch.questions)]
    return unknown + settle(now: now, times)
  }

  /// The store has the batches up to `number`: those after it are sent as they were.
  private mutating func rewind(to number: UInt64, now: Instant) -> [Output] {
    let first = unsettled.first?.batch.number ?? last + 1
    if number + 1 < first {
      let lost = committed.filter { $0.batch.number > number }.map { Unsettled(batch: $0.batch, isSent: true) }
      // A batch that is not kept cannot be repeated.
      guard lost.first?.batch.number == number + 1 else { return fence() }
      committed.removeAll { $0.batch.number > number }
      unsettled.insert(contentsOf: lost, at: 0)
    }
    state = .idle
    return advance(now: now)
  }
}

package import MediaModel

/// One transaction of a node. It begins with `fence(node, number)`, then come the rows of owners, then the changes.
package struct Batch<Machines: ClusterMachines>: Sendable {
  package enum OwnerChange: Sendable {
    case claim(EntityID)
    case release(EntityID, Term)

    package var entity: EntityID {
      switch self {
      case .claim(let entity), .release(let entity, _): entity
      }
    }
  }

  package struct EntityChange: Sendable {
    package var entity: EntityID
    package var change: Machines.Change
  }

  package var node: Incarnation
  /// Counts the node's transactions from 1.
  package var number: UInt64
  /// Sorted by entity, so that two nodes that claim the same two cannot wait for each other; changes of one entity in their order.
  package var owners: [OwnerChange] = []
  /// Some of the calls of these dead nodes, at most `Bounds.adoption` of each, those that nobody else is taking.
  package var adoptions: [Incarnation] = []
  package var changes: [EntityChange] = []
  /// Who owns these? Asked in a transaction, because a server that was replaced still answers other readers, and would say that nobody does.
  package var questions: [EntityID] = []

  package var claims: [EntityID] {
    owners.compactMap { if case .claim(let entity) = $0 { entity } else { nil } }
  }

  mutating func add(_ change: OwnerChange) {
    let place = owners.lastIndex { $0.entity <= change.entity }.map { $0 + 1 } ?? 0
    owners.insert(change, at: place)
  }
}

/// The reasons of `fence` for refusing a transaction.
package enum FenceRefusal: Hashable, Sendable {
  /// CL001: the node was declared dead. There is no way back.
  case fenced
  /// CL002: this number is in already.
  case done
  /// CL003: the node's last transaction in the store is this one. The store has gone back in time.
  case missing(after: UInt64)
}

package enum EngineRequest<Machines: ClusterMachines>: Sendable {
  case write(Batch<Machines>)
  /// `resume(me)`: a transaction of its own, so its answer is as durable as what it tells of.
  case resume
  case poll
  case declareDead(Incarnation, commits: UInt64)
  /// Reads the records and the node's own `commits` in one snapshot. The reader may be connected to a server that was replaced: then `commits` is less than the
  /// number of the batch that claimed.
  case load(EntityID, Term)
}

package enum EngineAnswer<Machines: ClusterMachines>: Sendable {
  /// - Parameters:
  ///   - claims: who owns each of the batch's `claims`, in their order.
  ///   - adopted: calls of the dead.
  ///   - found: the owners of the batch's `questions`. An entity that is missing has none.
  case committed(
    UInt64, claims: [Owner], adopted: [Incarnation: [EntityID: Term]], found: [EntityID: FoundOwner])
  case refused(UInt64, FenceRefusal)
  /// The connection was lost, or there was a warning at the commit.
  case unclear(UInt64)
  /// nil: fenced.
  case resumed(UInt64?)
  case notResumed
  case polled([NodeRow])
  case notPolled
  case declared(Incarnation, Bool)
  case loaded(EntityID, Term, asOf: UInt64, Machines.Records)
  case notLoaded(EntityID, Term)
}

package struct NodeRow: Hashable, Sendable {
  package var node: Incarnation
  package var commits: UInt64
  package var isDead: Bool

  package init(node: Incarnation, commits: UInt64, isDead: Bool) {
    self.node = node
    self.commits = commits
    self.isDead = isDead
  }
}

package struct FoundOwner: Hashable, Sendable {
  package var owner: Owner
  package var isDead: Bool

  package init(owner: Owner, isDead: Bool) {
    self.owner = owner
    self.isDead = isDead
  }
}

package import Calls
package import MediaModel

/// The state machines of the users and calls that a node owns, which enter and leave memory one by one.
package protocol ClusterMachines {
  /// From a client.
  associatedtype Request: Sendable
  /// To a client: the answer to a request, or an event.
  associatedtype Answer: Sendable
  /// Between a user and a call.
  associatedtype Note: Sendable
  /// The facts about a user that a call has to know, to be brought to the same state.
  associatedtype Holding: Sendable
  /// The facts about a call that a user has to know.
  associatedtype Standing: Sendable
  associatedtype Change: Sendable
  /// Everything stored about one user or call.
  associatedtype Records: Sendable

  /// - Parameter term: larger than that of the entity's earlier owners.
  mutating func adopt(_ entity: EntityID, _ records: Records, term: Term) -> [MachineResult<Self>]
  /// The entity is another node's, or nobody's, from now on. There is nothing to store.
  mutating func drop(_ entity: EntityID)
  mutating func handle(_ event: MachineEvent<Self>, of entity: EntityID) -> [MachineResult<Self>]
  /// A user's calls, a call's members.
  func partners(of entity: EntityID) -> [EntityID]
  /// Whether the entity must stay in memory although no client is connected.
  func isNeeded(_ entity: EntityID) -> Bool
}

package enum MachineEvent<Machines: ClusterMachines> {
  case connect(SessionID)
  case disconnect(SessionID)
  case request(SessionID, number: UInt64, Machines.Request)
  case note(Machines.Note, from: EntityID)
  /// The user and the call may know different things: say to the call what it has to know, also when that
  /// changes meanwhile, and take no news of it before `attached`.
  case meet(CallID)
  case attach(Machines.Holding, from: UserID)
  case attached(Machines.Standing, from: CallID)
  /// The note had no addressee: such a call does not exist.
  case refused(Machines.Note, by: EntityID)
  /// The call that the user was to meet does not exist.
  case gone(CallID)
}

package enum MachineResult<Machines: ClusterMachines> {
  /// Belongs to the entity that handled the event.
  case change(Machines.Change)
  /// - Parameter number: of the request; nil for an event.
  case answer(SessionID, number: UInt64?, Machines.Answer)
  /// - Parameter claims: if nobody owns the addressee, this node shall, as for a call that is to be started.
  case note(Machines.Note, to: EntityID, claims: Bool)
  /// Answers `meet`.
  case attach(Machines.Holding, to: CallID)
  /// Answers `attach`.
  case attached(Machines.Standing, to: UserID)
}

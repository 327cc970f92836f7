package import CallMessages
package import MediaModel

/// From one node to another.
package indirect enum ClusterMail<Machines: ClusterMachines>: Sendable {
  /// From the edge of a client to the owner of its user.
  case session(SessionID, of: UserID, Term, SessionEvent<Machines>)
  /// From there to the edge.
  case answer(SessionID, number: UInt64?, Machines.Answer)
  case closed(SessionID)
  /// - Parameter term: the one in which the sender owns `from`.
  case words(Words<Machines>, from: EntityID, Term, to: EntityID)
  /// The receiver does not own the addressee and does not know who does.
  case bounced(ClusterMail)
  case dead(Incarnation)

  var addressee: EntityID? {
    switch self {
    case .session(_, let user, _, _): .user(user)
    case .words(_, _, _, let to): to
    case .answer, .closed, .bounced, .dead: nil
    }
  }
}

package enum SessionEvent<Machines: ClusterMachines>: Sendable {
  case connect
  case disconnect
  case request(number: UInt64, Machines.Request)
}

package enum Words<Machines: ClusterMachines>: Sendable {
  case note(Machines.Note)
  /// - Parameter meeting: returns with the answer, so that one to an earlier `attach` is not taken for it.
  case attach(Machines.Holding, meeting: UInt64)
  case attached(Machines.Standing, meeting: UInt64)
  /// The call lives here now: attach.
  case here
}

/// The bus carries parcels. A parcel may be lost, late, repeated and out of order.
package struct Parcel<Machines: ClusterMachines>: Sendable {
  package enum Content: Sendable {
    case mail(Letter<ClusterMail<Machines>>)
    /// The stream's last number so far.
    case probe(last: UInt64)
    /// The answer: everything up to this number has arrived.
    case have(UInt64)
    /// A gap: please repeat from this number on. 0: begin again, nothing of the stream is waited for any more.
    case again(from: UInt64)
  }

  package var from: Incarnation
  package var to: Incarnation
  /// The sender's stream for `mail` and `probe`, the receiver's for the answers. A sender counts its streams to one receiver from 1, so that a late parcel of an earlier one is
  /// recognised.
  package var stream: UInt64
  package var content: Content
}

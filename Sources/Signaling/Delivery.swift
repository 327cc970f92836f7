package import Calls

/// What the control plane has for a client. For sessions that are gone it is dropped and counted.
package enum Delivery: Sendable {
  case reply(SessionID, id: String, Calls.Reply)
  case event(SessionID, EventDelivery)
  /// ERROR with this `message`, then the end.
  case close(SessionID, reason: String)

  /// nil for effects that are not for clients.
  package init?(_ effect: Calls.Effect) {
    switch effect {
    case .reply(let session, let id, let reply): self = .reply(session, id: id, reply)
    case .event(let session, let event): self = .event(session, event)
    case .close(let session, let reason): self = .close(session, reason: reason)
    case .negotiate, .media, .admission, .publish, .webhook, .ask, .history, .store, .measured: return nil
    }
  }

  package var session: SessionID {
    switch self {
    case .reply(let session, _, _), .event(let session, _), .close(let session, _): session
    }
  }
}

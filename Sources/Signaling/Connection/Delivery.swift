package import Calls
package import Contract

/// A message of the control plane for a client. It is dropped and counted when the session is gone.
package enum Delivery: Sendable {
  case reply(SessionID, id: String, Calls.Reply)
  case event(SessionID, EventDelivery)
  /// The answer to the session's last `.subscribe` to a topic: nil, or the text of an ERROR.
  case admission(SessionID, refusal: String?)
  /// An event on a topic.
  case publish(SessionID, Channel, messageID: UInt64, EventMessage)
  /// ERROR with this `message`, then the end.
  case close(SessionID, reason: String)

  /// nil for effects that are not for clients.
  package init?(_ effect: Calls.Effect) {
    switch effect {
    case .reply(let session, let id, let reply): self = .reply(session, id: id, reply)
    case .event(let session, let event): self = .event(session, event)
    case .close(let session, let reason): self = .close(session, reason: reason)
    case .admission(let session, _, let refusal): self = .admission(session, refusal: refusal)
    case .publish(let session, let channel, let messageID, let message):
      self = .publish(session, channel, messageID: messageID, message)
    case .negotiate, .media, .webhook, .ask, .history, .store, .measured: return nil
    }
  }

  package var session: SessionID {
    switch self {
    case .reply(let session, _, _), .event(let session, _), .close(let session, _), .admission(let session, _),
      .publish(let session, _, _, _):
      session
    }
  }
}

/// The receiver of clients' requests. The control plane is one.
package protocol SignalingSink: Sendable {
  /// Takes a command; called on the connections' event loops, in order for each session, and must return at once.
  /// A session's first command is `.connect`, its last `.disconnect`. A `media` request comes as `.request(…, .media(…))`, its SDP not read yet.
  func submit(_ command: Calls.Command)
}

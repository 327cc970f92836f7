package import Calls

/// The receiver of clients' requests. The control plane is one.
package protocol SignalingSink: Sendable {
  /// Takes a command; called on the connections' event loops, in order for each session, and must return at once.
  /// A session's first command is `.connect`, its last `.disconnect`. A `media` request comes as `.request(…, .media(…))`, its SDP not read yet.
  func submit(_ command: NodeCommand)
}

extension Calls.Effect {
  /// The session whose client gets the effect; nil for effects that are not for a client, or not at once.
  package var session: SessionID? {
    switch self {
    case .reply(let session, _, _), .event(let session, _), .close(let session, _), .admission(let session, _, _),
      .publish(let session, _, _, _):
      session
    case .negotiate, .media, .webhook, .push, .ask, .history, .store, .measured, .keyless: nil
    }
  }
}

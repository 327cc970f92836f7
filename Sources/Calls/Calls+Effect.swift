package import Contract
package import MediaModel

extension Calls {
  /// The answer to one request.
  package enum Reply: Sendable {
    case ok(any Encodable & Sendable)
    case failed(RequestError)
  }

  /// What the shell has to do, in this order: it is the order of events for each device.
  package enum Effect: Sendable {
    case reply(SessionID, id: String, Reply)
    case event(SessionID, EventDelivery)
    /// Send ERROR with this `message` and close. The session is forgotten here already.
    case close(SessionID, reason: String)
    case negotiate(SessionID, id: String, Negotiate)
    /// `.mute`, `.removeTrack` or `.remove`; a peer whose configuration is under way counts too.
    case media(MediaCommand)
  }
}

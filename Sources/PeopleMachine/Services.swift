import CallMessages
import MediaModel

/// The connections of the app's back end. They are not in the `Directory`, because a service is not a device of a user
/// (protocol section 11).
struct Services {
  private var identities: [SessionID: Identity] = [:]
  private var sessions: [Device: SessionID] = [:]

  func identity(of session: SessionID) -> Identity? { identities[session] }

  /// Returns the session that it replaces (protocol section 2).
  mutating func connect(_ session: SessionID, _ identity: Identity) -> SessionID? {
    let old = sessions.updateValue(session, forKey: identity.device)
    if let old { identities[old] = nil }
    identities[session] = identity
    return old
  }

  mutating func disconnect(_ session: SessionID) {
    guard let identity = identities.removeValue(forKey: session) else { return }
    sessions[identity.device] = nil
  }
}

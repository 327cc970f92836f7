import CallMessages
import Contract
import MediaModel

/// `presence/set` and `presence/watch`, and the event `presence` (protocol section 7).
extension People {
  mutating func setPresence(_ request: SetPresence, _ identity: Identity) throws(RequestError) -> Response {
    if let role = request.role, !identity.roles.contains(role) {
      throw RequestError(.roleNotAllowed, "the token's claim \"roles\" does not have this role", field: "role")
    }
    let user = identity.device.user
    presence.set(request.state, role: request.role, of: user)
    presence.touch(user)
    return Response(.nothing)
  }

  /// - Throws: `request.invalid` unless it names either users or a role, `request.too-large` for more than a connection may watch.
  func checkWatch(_ request: WatchPresence, _ identity: Identity) throws(RequestError) {
    guard (request.users == nil) != (request.role == nil) else {
      throw RequestError(.requestInvalid, "either users or a role is watched", field: "users")
    }
    guard let session = directory[identity.device]?.connection?.session else { return }
    if let users = request.users, !presence.hasRoom(for: users, on: session) {
      throw RequestError(
        .requestTooLarge, "a connection watches at most \(PresenceTable.maximumUsers) users", field: "users")
    }
    if let role = request.role {
      guard (1...128).contains(role.utf8.count) else {
        throw RequestError(.requestInvalid, "a role has 1 to 128 bytes", field: "role")
      }
      guard presence.hasRoom(for: role, on: session) else {
        throw RequestError(
          .requestTooLarge, "a connection watches at most \(PresenceTable.maximumRoles) roles", field: "role")
      }
    }
  }

  /// Users who are out of reach appear offline, and are not watched.
  mutating func watchPresence(
    _ request: WatchPresence, _ identity: Identity, _ reach: Reach
  ) throws(RequestError) -> Response {
    try checkWatch(request, identity)
    guard let session = directory[identity.device]?.connection?.session else { throw .notFound }
    if let role = request.role {
      let users = presence.bearers(of: role).map { (user: $0, now: presence(of: $0)) }
      presence.watch(role: role, users, on: session)
      let states = users.filter { $0.now.state != .offline }.map { PresenceState(user: $0.user, state: $0.now.state) }
      return Response(.presence(PresenceList(users: states)))
    }
    var states: [PresenceState] = []
    var seen: Set<UserID> = []
    for user in request.users ?? [] where seen.insert(user).inserted {
      guard reach.includes(user) else {
        states.append(PresenceState(user: user, state: .offline))
        continue
      }
      let now = presence(of: user)
      presence.watch(user, now, on: session)
      states.append(PresenceState(user: user, state: now.state))
    }
    return Response(.presence(PresenceList(users: states)))
  }

  /// `ringing` and `in-call` hide the user's setting; a user who is only `disconnected` is not in a call (rule 10).
  private func presence(of user: UserID) -> PresenceTable.Shown {
    let role = presence.role(of: user)
    guard directory.isConnected(user) else { return PresenceTable.Shown(state: .offline, role: role) }
    var isRinging = false
    for place in memberships[user] ?? [] {
      if place.part.phase == .joined { return PresenceTable.Shown(state: .inCall, role: role) }
      if place.part.phase == .ringing { isRinging = true }
    }
    let set: PresenceState.State = presence.isUnavailable(user, now: now) ? .unavailable : .available
    return PresenceTable.Shown(state: isRinging ? .ringing : set, role: role)
  }

  /// Reports the state of each user that was touched since the last time. Only the final state, if it runs after everything that follows from a
  /// command.
  package mutating func tellPresence() {
    for user in presence.takeTouched() {
      var messages: [PresenceState.State: Message] = [:]
      for (session, state) in presence.show(presence(of: user), of: user) {
        guard let device = directory.device(of: session) else { continue }
        let message = messages[state] ?? makeMessage(.presence(PresenceState(user: user, state: state)), of: nil)
        messages[state] = message
        deliver(message, to: device)
      }
    }
  }

  // MARK: roles

  /// Whether the role may start calls and invite. The picked role decides; if none was picked, every role of the token
  /// must be allowed to.
  func mayStart(_ identity: Identity) -> Bool {
    let picked = presence.role(of: identity.device.user).flatMap { identity.roles.contains($0) ? [$0] : nil }
    return !(picked ?? identity.roles).contains(where: configuration.neverStarts.contains)
  }
}

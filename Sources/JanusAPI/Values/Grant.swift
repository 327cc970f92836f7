/// The rights that the secrets in a request give, as the shell has judged them.
package struct Grant: Sendable, Hashable {
  /// The API secret was there, and right.
  package var hasSecret: Bool
  /// The request's token, if it is valid.
  package var token: TokenGrant?
  /// The token in a message's body, if it is signed and valid: rooms with signed tokens ask for it.
  package var bodyToken: TokenGrant?

  package init(hasSecret: Bool = false, token: TokenGrant? = nil, bodyToken: TokenGrant? = nil) {
    self.hasSecret = hasSecret
    self.token = token
    self.bodyToken = bodyToken
  }

  /// The API secret allows everything that a room's own secrets do not forbid. A token says what it allows.
  var mayPublish: Bool { hasSecret || (token?.mayPublish ?? true) }
  var isAdministrator: Bool { token?.isAdministrator ?? false }

  func covers(_ room: PluginID) -> Bool {
    guard !hasSecret, let token else { return true }
    return token.covers(room)
  }
}

/// The rights of a valid token.
package struct TokenGrant: Sendable, Hashable {
  /// The person to whom it was given: tokens of the same person have the same. nil for tokens that name nobody.
  package var identity: String?
  /// Whether it covers the videoroom.
  package var coversVideoRoom: Bool
  /// The ids of the rooms that it is for; nil for all.
  package var rooms: Set<String>?
  package var mayPublish: Bool
  package var mayCreate: Bool
  /// It stands for each room's secret, and for the administrator's key.
  package var isAdministrator: Bool

  package init(
    identity: String? = nil, coversVideoRoom: Bool = true, rooms: Set<String>? = nil, mayPublish: Bool = true,
    mayCreate: Bool = false, isAdministrator: Bool = false
  ) {
    self.identity = identity
    self.coversVideoRoom = coversVideoRoom
    self.rooms = rooms
    self.mayPublish = mayPublish
    self.mayCreate = mayCreate
    self.isAdministrator = isAdministrator
  }

  func covers(_ room: PluginID) -> Bool { rooms?.contains(room.description) ?? true }
}

/// Compares all bytes of secrets of the same length, so that the time does not tell how many are right.
func isSameSecret(_ a: String, _ b: String) -> Bool {
  guard a.utf8.count == b.utf8.count else { return false }
  return zip(a.utf8, b.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}

import MediaModel

/// The user that last rang this device, for each call that it is not in. Until a client has a root, only a word of that user lets in its own user (protocol
/// section 5.13).
struct Ringers: Sendable {
  /// How many calls are remembered; above that the one that rang first is forgotten.
  static let limit = 256

  private var users: [CallID: UserID] = [:]
  private var calls: [CallID] = []

  subscript(call: CallID) -> UserID? { users[call] }

  mutating func note(_ user: UserID, of call: CallID) {
    if users.updateValue(user, forKey: call) == nil { calls.append(call) }
    if calls.count > Self.limit { users[calls.removeFirst()] = nil }
  }

  /// The call is over.
  mutating func forget(_ call: CallID) {
    if users.removeValue(forKey: call) != nil { calls.removeAll { $0 == call } }
  }
}

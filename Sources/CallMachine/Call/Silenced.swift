import MediaModel

/// Users who were not rung because they are unavailable or busy, and whose history shows the call as missed (protocol section 8).
struct Silenced {
  /// Each with its name.
  private(set) var names: [UserID: String?] = [:]
  /// There were such users, perhaps before a restart.
  private(set) var wasAny: Bool

  init(wasAny: Bool = false) { self.wasAny = wasAny }

  mutating func add(_ user: UserID, name: String?) {
    names[user] = .some(name)
    wasAny = true
  }

  mutating func forget(_ user: UserID) { names[user] = nil }
}

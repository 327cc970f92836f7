import CallMessages
import Contract
import MediaModel

/// The states that users set, and the watches on them (protocol section 7). `People` computes a user's state only after a command touched it, and only while
/// there are watches.
struct PresenceTable {
  /// A user's setting. A user who never set one and has no role has none, and is available.
  private struct Setting {
    var state: SetPresence.State
    /// The role that was picked.
    var role: String?
    /// Not set by the user: the initial state of a user with a role. It is not stored.
    var isDefault = false
    /// Since when the user has had no connection.
    var goneSince: Timestamp?
  }

  private struct Watch {
    var users: Set<UserID> = []
    var roles: Set<String> = []
  }

  /// The state that the user's watchers were last told; no user in the table is offline.
  struct Shown: Equatable {
    var state: PresenceState.State
    var role: String?
  }

  /// How long the setting outlives the last connection: a short reconnect does not undo it.
  static let grace = Duration.seconds(20)
  static let maximumUsers = 1_000
  static let maximumRoles = 16

  private var settings: [UserID: Setting] = [:]
  private var gone: Set<UserID> = []
  private var bearers: [String: Set<UserID>] = [:]
  private var watches: [SessionID: Watch] = [:]
  private var watchersOfUser: [UserID: Set<SessionID>] = [:]
  private var watchersOfRole: [String: Set<SessionID>] = [:]
  private var shown: [UserID: Shown] = [:]
  private var touched: [UserID] = []
  /// Users whose setting differs from the stored one.
  private var changed: Set<UserID> = []

  // MARK: what users set

  func role(of user: UserID) -> String? { settings[user]?.role }

  func isUnavailable(_ user: UserID, now: Timestamp) -> Bool {
    guard let setting = settings[user], setting.state == .unavailable else { return false }
    return setting.goneSince.map { $0 + Self.grace > now } ?? true
  }

  func bearers(of role: String) -> [UserID] { (bearers[role] ?? []).sorted() }

  /// The user's first connection: a user with a role starts unavailable.
  mutating func arrive(_ user: UserID, hasRole: Bool, now: Timestamp) {
    if let since = settings[user]?.goneSince, since + Self.grace <= now { forget(user) }
    gone.remove(user)
    settings[user]?.goneSince = nil
    if settings[user] == nil, hasRole { settings[user] = Setting(state: .unavailable, isDefault: true) }
  }

  /// The user's last connection ended.
  mutating func depart(_ user: UserID, now: Timestamp) {
    guard settings[user] != nil else { return }
    settings[user]?.goneSince = now
    gone.insert(user)
  }

  /// Without a role the role that was picked before stays.
  mutating func set(_ state: SetPresence.State, role: String?, of user: UserID) {
    let before = stored(user)
    let old = settings[user]?.role
    if let role, role != old {
      drop(user, from: old)
      bearers[role, default: []].insert(user)
    }
    settings[user] = Setting(state: state, role: role ?? old)
    if stored(user) != before { changed.insert(user) }
  }

  mutating func forget(_ user: UserID) {
    if stored(user) != nil { changed.insert(user) }
    drop(user, from: settings.removeValue(forKey: user)?.role)
    gone.remove(user)
  }

  /// Forgets the settings of users who did not return in time. Returns whether some users may still return.
  mutating func clear(now: Timestamp) -> Bool {
    for user in gone {
      if let since = settings[user]?.goneSince, since + Self.grace <= now { forget(user) }
    }
    return !gone.isEmpty
  }

  private mutating func drop(_ user: UserID, from role: String?) {
    guard let role else { return }
    bearers[role]?.remove(user)
    if bearers[role]?.isEmpty == true { bearers[role] = nil }
  }

  // MARK: what survives a restart

  var hasChanges: Bool { !changed.isEmpty }

  mutating func takeChanges() -> [UserID] {
    defer { changed = [] }
    return changed.sorted()
  }

  func stored(_ user: UserID) -> StoredPresence? {
    settings[user].flatMap { $0.isDefault ? nil : StoredPresence(state: $0.state, role: $0.role) }
  }

  var everything: [StoreChange] {
    settings.keys.sorted().compactMap { user in stored(user).map { .presence(user, $0) } }
  }

  /// As if the user's last connection had ended now.
  mutating func restore(_ stored: StoredPresence, of user: UserID, now: Timestamp) {
    settings[user] = Setting(state: stored.state, role: stored.role)
    if let role = stored.role { bearers[role, default: []].insert(user) }
    depart(user, now: now)
  }

  // MARK: watching

  func hasRoom(for users: [UserID], on session: SessionID) -> Bool {
    let old = watches[session]?.users ?? []
    return old.count + Set(users).subtracting(old).count <= Self.maximumUsers
  }

  func hasRoom(for role: String, on session: SessionID) -> Bool {
    let old = watches[session]?.roles ?? []
    return old.contains(role) || old.count < Self.maximumRoles
  }

  mutating func watch(_ user: UserID, _ now: Shown, on session: SessionID) {
    watches[session, default: Watch()].users.insert(user)
    watchersOfUser[user, default: []].insert(session)
    if shown[user] == nil, now.state != .offline { shown[user] = now }
  }

  /// - Parameter users: all that have picked the role, with their current state.
  mutating func watch(role: String, _ users: [(user: UserID, now: Shown)], on session: SessionID) {
    watches[session, default: Watch()].roles.insert(role)
    watchersOfRole[role, default: []].insert(session)
    for (user, now) in users where shown[user] == nil && now.state != .offline { shown[user] = now }
  }

  /// The connection is gone, and so are its watches.
  mutating func unwatch(_ session: SessionID) {
    guard let watch = watches.removeValue(forKey: session) else { return }
    var users = watch.users
    for role in watch.roles {
      watchersOfRole[role]?.remove(session)
      if watchersOfRole[role]?.isEmpty == true {
        watchersOfRole[role] = nil
        users.formUnion(bearers[role] ?? [])
      }
    }
    for user in users {
      watchersOfUser[user]?.remove(session)
      if watchersOfUser[user]?.isEmpty == true { watchersOfUser[user] = nil }
      if watchersOfUser[user] == nil, watchers(of: shown[user]?.role).isEmpty { shown[user] = nil }
    }
  }

  private func watchers(of role: String?) -> Set<SessionID> { role.flatMap { watchersOfRole[$0] } ?? [] }

  // MARK: changes

  /// The user's state may have changed.
  mutating func touch(_ user: UserID) {
    if !watches.isEmpty { touched.append(user) }
  }

  mutating func takeTouched() -> [UserID] {
    guard !touched.isEmpty else { return [] }
    defer { touched = [] }
    var seen: Set<UserID> = []
    return touched.filter { seen.insert($0).inserted }
  }

  /// Returns the sessions to notify, with the state for each. Watchers of a role that the user no longer has see the user go
  /// offline.
  mutating func show(_ new: Shown, of user: UserID) -> [(session: SessionID, state: PresenceState.State)] {
    let old = shown[user] ?? Shown(state: .offline, role: nil)
    guard old != new else { return [] }
    let byName = watchersOfUser[user] ?? []
    let before = byName.union(watchers(of: old.role))
    let after = byName.union(watchers(of: new.role))
    shown[user] = after.isEmpty || new.state == .offline ? nil : new
    return before.union(after).sorted { $0.rawValue < $1.rawValue }.compactMap { session in
      let was = before.contains(session) ? old.state : .offline
      let state = after.contains(session) ? new.state : .offline
      return was == state ? nil : (session, state)
    }
  }
}

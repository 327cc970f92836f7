import Contract
import MediaModel

/// Presence, history and the user's devices (protocol sections 5, 7 and 8).
extension CallClient {
  /// Sets whether this user may be rung; a user with roles also says in which role.
  public func setPresence(isAvailable: Bool, role: String? = nil) async throws(SignalingError) {
    try await perform(.people(.setPresence(SetPresence(state: isAvailable ? .available : .unavailable, role: role))))
  }

  /// Watches users. Returns their current state; `ClientEvent.presence` reports each change, until the connection
  /// breaks.
  public func watch(_ users: [String]) async throws(SignalingError) -> [Presence] {
    let body = WatchPresence(users: try Self.identifiers(users))
    return try await connection.request(.people(.watchPresence(body)), reply: PresenceList.self).users.map(
      Presence.init)
  }

  /// Watches everyone who has picked a role.
  public func watch(role: String) async throws(SignalingError) -> [Presence] {
    try await connection.request(.people(.watchPresence(WatchPresence(role: role))), reply: PresenceList.self).users
      .map(Presence.init)
  }

  /// This user's calls, newest first: those that started before `milliseconds` since 1970, at most `limit` (1 to 200).
  public func history(
    before milliseconds: Int64? = nil, limit: Int? = nil
  ) async throws(SignalingError) -> [PastCall] {
    let body = ListHistory(before: milliseconds.map { Timestamp(milliseconds: $0) }, limit: limit)
    return try await connection.request(.history(.list(body)), reply: HistoryList.self).calls.map(PastCall.init)
  }

  /// Deletes calls from this user's history; all of them if none is named.
  public func deleteHistory(_ calls: [String]? = nil) async throws(SignalingError) {
    var ids: [CallID] = []
    for call in calls ?? [] {
      guard let id = CallID(call) else { throw .invalidIdentifier }
      ids.append(id)
    }
    try await perform(.history(.delete(calls == nil ? DeleteHistory(all: true) : DeleteHistory(calls: ids))))
  }

  /// Calls and seconds spent with a user.
  public func historyTotals(with user: String) async throws(SignalingError) -> (calls: Int, seconds: Int) {
    guard let user = UserID(user) else { throw .invalidIdentifier }
    let totals = try await connection.request(.history(.totals(HistoryTotals(with: user))), reply: Totals.self)
    return (totals.calls, totals.seconds)
  }

  /// The registered devices of users, as the server lists them.
  public func devices(of users: [String]) async throws(SignalingError) -> [RegisteredDevice] {
    let body = ListDevices(users: try Self.identifiers(users))
    return try await connection.request(.people(.listDevices(body)), reply: Devices.self).devices.compactMap(
      RegisteredDevice.init)
  }

  /// Removes one of this user's devices: it loses its place in calls, and their keys change.
  public func removeDevice(_ device: String) async throws(SignalingError) {
    guard let device = DeviceID(device) else { throw .invalidIdentifier }
    try await perform(.people(.removeDevice(RemoveDevice(device: device))))
  }
}

/// The presence of a user.
public struct Presence: Sendable, Hashable {
  /// Whether and how the user can be reached.
  public enum State: String, Sendable {
    case offline, unavailable, available, ringing
    case inCall = "in-call"
  }
  /// The user's id.
  public var user: String
  /// Whether and how the user can be reached.
  public var state: State

  init(_ presence: PresenceState) {
    user = presence.user.text
    state = State(rawValue: presence.state.rawValue) ?? .offline
  }
}

/// A call in this user's history.
public struct PastCall: Sendable, Hashable {
  /// The call's id.
  public var id: String
  /// Whether this user was called.
  public var isIncoming: Bool
  /// `answered`, `missed`, `declined` or `cancelled`.
  public var outcome: String
  /// Whether it was a call with video.
  public var media: CallSnapshot.Media
  /// The other users.
  public var members: [String]
  /// Milliseconds since 1970.
  public var startedAt: Int64
  /// How many seconds this user spent in it.
  public var seconds: Int
  /// Whether it is still running and may be rejoined.
  public var isRejoinable: Bool

  init(_ entry: HistoryEntry) {
    id = entry.id.text
    isIncoming = entry.direction == .incoming
    outcome = entry.outcome.rawValue
    media = CallSnapshot.Media(rawValue: entry.media.rawValue) ?? .video
    members = entry.members.map(\.user.text)
    startedAt = entry.startedAt.milliseconds
    seconds = entry.seconds
    isRejoinable = entry.rejoinable
  }
}

/// A device that has registered keys.
public struct RegisteredDevice: Sendable, Hashable {
  /// The user whose device it is.
  public var user: String
  /// The device's id.
  public var device: String
  /// The name that it gave itself.
  public var name: String?
  /// The hash over its public keys, computed here.
  public var fingerprint: [UInt8]

  init?(_ entry: DeviceEntry) {
    guard let keys = DeviceKeys(entry) else { return nil }
    user = entry.user.text
    device = entry.device.text
    name = entry.name
    fingerprint = keys.fingerprint
  }
}

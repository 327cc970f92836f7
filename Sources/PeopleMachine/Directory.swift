import CallMessages
import Contract
import MediaModel
import Octets

/// All known users with their devices, and the devices' connections, keys and mailboxes.
struct Directory {
  /// A STOMP connection of a device.
  struct Connection {
    var session: SessionID
    var identity: Identity
    /// The acknowledgement mode of the subscription to the event queue; nil without one.
    var events: AcknowledgementMode?
    /// A first subscription whose greeting is not complete yet.
    var greeting: Greeting?
    /// It had its first subscription. Later ones repeat nothing.
    var isGreeted = false
    /// The limit of abuse reports: five at once, then one every 10 s.
    var reports = TokenBucket(perSecond: 1, burst: 50)
  }

  /// The news that a device needs from its user's calls before it reads its events.
  struct Greeting {
    var mode: AcknowledgementMode
    /// The calls that have not answered yet.
    var missing: Set<CallID>
    var states: [CallID: CallState] = [:]
    var rings: [CallID: Ring] = [:]
  }

  struct DeviceRecord {
    /// Its registered keys.
    var entry: DeviceEntry?
    /// Where rings are announced to the device while it is not connected.
    var push: PushSubscription?
    var connection: Connection?
    /// The call in which it speaks.
    var speaking: Speaking?
    var mailbox: Mailbox
    /// The beginning of the day, in UTC, on which it was last connected.
    var seenDay: Timestamp?
  }

  private struct UserRecord {
    var name: String?
    /// Statements of a device about another one: 60 a minute.
    var statements = TokenBucket(perSecond: 1, burst: 60)
    /// 10 pairing steps a minute: each costs 6.
    var pairings = TokenBucket(perSecond: 1, burst: 60)
    /// 5 recordings that alert people at once, then one a minute: each costs 60.
    var alerts = TokenBucket(perSecond: 1, burst: 300)
    /// In order of ids, so that they get everything in the same order in each run.
    var devices: [DeviceID] = []
  }

  private var users: [UserID: UserRecord] = [:]
  private var records: [Device: DeviceRecord] = [:]
  private var sessions: [SessionID: Device] = [:]
  private var revokes = Revokes()
  /// The highest number of any forgotten mailbox. New mailboxes continue from there, so that `seq` rises even for a device that returns.
  private var forgottenSeq: UInt64 = 0

  subscript(device: Device) -> DeviceRecord? {
    _read { yield records[device] }
    _modify { yield &records[device] }
  }

  /// - Parameter lastSeq: below all numbers of this run of the server.
  init(lastSeq: UInt64 = 0) { forgottenSeq = lastSeq }

  /// All, in order.
  var devices: [Device] { records.keys.sorted() }

  func devices(of user: UserID) -> [Device] {
    users[user]?.devices.map { Device(user: user, device: $0) } ?? []
  }

  func name(of user: UserID) -> String? { users[user]?.name }

  func device(of session: SessionID) -> Device? { sessions[session] }

  func connection(of session: SessionID) -> Connection? { sessions[session].flatMap { records[$0]?.connection } }

  func isConnected(_ device: Device) -> Bool { records[device]?.connection != nil }

  func isConnected(_ user: UserID) -> Bool { devices(of: user).contains(where: isConnected) }

  /// The connected devices of each user that has one.
  var connected: [UserID: [DeviceID]] {
    sessions.values.reduce(into: [:]) { $0[$1.user, default: []].append($1.device) }
  }

  /// The devices of a user that have registered keys.
  func entries(of user: UserID) -> [DeviceEntry] { devices(of: user).compactMap { records[$0]?.entry } }

  func hasKeys(_ user: UserID) -> Bool { devices(of: user).contains { records[$0]?.entry != nil } }

  /// Registers a connection of its device. Returns the session that it replaces.
  mutating func connect(_ session: SessionID, _ identity: Identity) -> SessionID? {
    let device = identity.device
    addDevice(device)
    if let name = identity.name { users[device.user]?.name = name }
    let old = records[device]?.connection?.session
    if let old { sessions[old] = nil }
    sessions[session] = device
    records[device]?.connection = Connection(session: session, identity: identity)
    return old
  }

  /// Returns the device that is now without a connection; nil for a session that was replaced.
  mutating func disconnect(_ session: SessionID) -> Device? {
    guard let device = sessions.removeValue(forKey: session) else { return nil }
    records[device]?.connection = nil
    return device
  }

  // MARK: what devices say of each other

  func revokes(of user: UserID) -> [Revoke] { revokes[user] }

  var usersWithRevokes: [UserID] { revokes.users }

  mutating func add(_ revoke: Revoke) { revokes.add(revoke) }

  mutating func restore(_ stored: [Revoke], of user: UserID) { revokes[user] = stored }

  mutating func forgetRevokes(of user: UserID) { revokes[user] = [] }

  /// - Throws: `rate.limited`: each statement makes the members of the user's calls look up its devices again.
  mutating func takeStatement(_ user: UserID, now: Timestamp) throws(RequestError) {
    guard let wait = users[user]?.statements.take(now: now.nanoseconds) else { return }
    throw RequestError(
      .rateLimited, "a user's devices vouch and revoke at most 60 times a minute",
      retryAfterMs: wait.millisecondsRoundedUp)
  }

  /// - Throws: `rate.limited`.
  mutating func takePairing(_ user: UserID, now: Timestamp) throws(RequestError) {
    guard let wait = users[user]?.pairings.take(6, now: now.nanoseconds) else { return }
    throw RequestError(
      .rateLimited, "a user's devices send at most 10 steps of pairing a minute",
      retryAfterMs: wait.millisecondsRoundedUp)
  }

  /// - Throws: `rate.limited`.
  mutating func takeAlert(_ user: UserID, now: Timestamp) throws(RequestError) {
    guard let wait = users[user]?.alerts.take(60, now: now.nanoseconds) else { return }
    throw RequestError(
      .rateLimited, "5 recordings may alert people at once, then one a minute: begin it without alert, or wait",
      retryAfterMs: wait.millisecondsRoundedUp)
  }

  mutating func forget(_ device: Device) {
    forgottenSeq = max(forgottenSeq, records[device]?.mailbox.lastSeq ?? 0)
    records[device] = nil
    users[device.user]?.devices.removeAll { $0 == device.device }
    if users[device.user]?.devices.isEmpty == true { users[device.user] = nil }
  }

  /// A device that was known before the restart.
  mutating func restore(
    _ device: Device, userName: String?, entry: DeviceEntry?, push: PushSubscription? = nil, _ mailbox: StoredMailbox?,
    now: Timestamp
  ) {
    addDevice(device)
    if let userName { users[device.user]?.name = userName }
    if let entry { records[device]?.entry = entry }
    if let push { records[device]?.push = push }
    // No device is connected after a restart, so from now on events are kept for a device that is away.
    records[device]?.mailbox.goAway(now: now)
    if let mailbox { records[device]?.mailbox.restore(mailbox, now: now) }
  }

  private mutating func addDevice(_ device: Device) {
    guard records[device] == nil else { return }
    records[device] = DeviceRecord(mailbox: Mailbox(lastSeq: forgottenSeq))
    var user = users[device.user] ?? UserRecord()
    let place = user.devices.firstIndex { device.device < $0 } ?? user.devices.endIndex
    user.devices.insert(device.device, at: place)
    users[device.user] = user
  }
}

import CallMessages
import Contract
import MediaModel

/// Connections, subscriptions and acknowledgements (protocol sections 2 and 3).
extension People {
  func identity(of session: SessionID) -> Identity? {
    directory.connection(of: session)?.identity ?? services.identity(of: session)
  }

  mutating func connect(_ session: SessionID, _ identity: Identity) {
    if identity.isService {
      if let old = services.connect(session, identity) { replace(old) }
      return
    }
    noteName(identity)
    if !directory.isConnected(identity.device.user) {
      presence.arrive(identity.device.user, hasRole: !identity.roles.isEmpty, now: now)
      presence.touch(identity.device.user)
    }
    if let old = directory.connect(session, identity) {
      replace(old)
      directory[identity.device]?.mailbox.goAway(now: now)
      setSignaling(of: identity.device, isUp: false)
    }
    see(identity.device)
    setSignaling(of: identity.device, isUp: true)
    watch(identity.device)
  }

  private mutating func replace(_ old: SessionID) {
    out.effects.append(.client(.close(old, reason: "replaced by a newer connection")))
    drop(old)
  }

  /// Removes the subscriptions, watches, questions and waits of a session.
  mutating func drop(_ session: SessionID) {
    topics.remove(session)
    presence.unwatch(session)
    questions.drop(session)
    links.leave(session)
  }

  mutating func disconnect(_ session: SessionID) {
    drop(session)
    services.disconnect(session)
    guard let device = directory.disconnect(session) else { return }
    see(device)
    directory[device]?.mailbox.goAway(now: now)
    watch(device)
    notePresence(of: device.user)
    setSignaling(of: device, isUp: false)
  }

  /// The operator's `conclave disconnect`: the user's devices lose their places in calls, and their connections. Keys and events stay.
  mutating func disconnect(_ user: UserID) {
    for device in directory.devices(of: user) {
      for place in memberships[user] ?? [] where place.part.devices.contains(device.device) {
        send(.remove(.device(device), from: place.call))
      }
      guard let session = directory[device]?.connection?.session else { continue }
      out.effects.append(.client(.close(session, reason: "an operator closed this connection")))
      disconnect(session)
    }
  }

  /// A connection of the user ended, possibly the last.
  mutating func notePresence(of user: UserID) {
    guard !directory.isConnected(user) else { return }
    presence.depart(user, now: now)
    presence.touch(user)
  }

  private mutating func setSignaling(of device: Device, isUp: Bool) {
    for call in calls(of: device.user) { send(.signaling(device, isUp: isUp, in: call)) }
  }

  /// The device subscribed to its events. On a new connection each call of its user is first asked for the state that the device needs.
  mutating func subscribe(_ session: SessionID, _ mode: AcknowledgementMode) {
    guard let device = directory.device(of: session), let connection = directory[device]?.connection,
      connection.events == nil, connection.greeting == nil
    else { return }
    guard !connection.isGreeted else { return resume(device, session, mode) }
    let calls = calls(of: device.user)
    directory[device]?.connection?.greeting = Directory.Greeting(mode: mode, missing: Set(calls))
    for call in calls { send(.greet(session, device, in: call)) }
    if calls.isEmpty { greet(device, session) }
  }

  /// The device joined a call that was not asked.
  mutating func greetLater(_ device: Device, in call: CallID) {
    guard let session = directory[device]?.connection?.session,
      directory[device]?.connection?.greeting?.missing.insert(call).inserted == true
    else { return }
    send(.greet(session, device, in: call))
  }

  /// A call's answer. Until all have answered, events wait in the mailbox.
  mutating func greet(_ session: SessionID, _ call: CallID, _ state: CallState?, _ ring: Ring?) {
    guard let device = directory.device(of: session),
      directory[device]?.connection?.greeting?.missing.remove(call) != nil
    else { return }
    directory[device]?.connection?.greeting?.states[call] = state
    directory[device]?.connection?.greeting?.rings[call] = ring
    if directory[device]?.connection?.greeting?.missing.isEmpty == true { greet(device, session) }
  }

  /// Sends the state of each call that the device is in (rule 16), then the events that it missed, then the rings that continue
  /// (rule 1).
  private mutating func greet(_ device: Device, _ session: SessionID) {
    guard let greeting = directory[device]?.connection?.greeting else { return }
    directory[device]?.connection?.greeting = nil
    directory[device]?.connection?.isGreeted = true
    directory[device]?.connection?.events = greeting.mode
    // A call's answer may be older than its last news.
    let memberships = memberships[device.user] ?? []
    for place in memberships where place.part.devices.contains(device.device) {
      guard let state = greeting.states[place.call] else { continue }
      deliver(makeMessage(.state(state), of: place.call), to: device)
    }
    let rung = comeBack(device, session, greeting.mode, isNewConnection: true)
    for place in memberships where place.part.phase == .ringing && !rung.contains(place.call) {
      guard let ring = greeting.rings[place.call] else { continue }
      deliver(makeMessage(.ring(ring), of: place.call), to: device)
    }
    tellOfAlerts(device)
    tellOfWaiting(device)
  }

  /// A later subscription on the same connection repeats nothing.
  private mutating func resume(_ device: Device, _ session: SessionID, _ mode: AcknowledgementMode) {
    directory[device]?.connection?.events = mode
    _ = comeBack(device, session, mode, isNewConnection: false)
    tellOfAlerts(device)
  }

  /// Writes the events that the device missed. Returns the calls whose rings were among them.
  private mutating func comeBack(
    _ device: Device, _ session: SessionID, _ mode: AcknowledgementMode, isNewConnection: Bool
  ) -> Set<CallID> {
    let limits = mailboxLimits
    let missed =
      directory[device]?.mailbox.comeBack(isNewConnection: isNewConnection, mode: mode, limits: limits, now: now) ?? []
    if directory[device]?.mailbox.isStored == true { journal.mailboxes.insert(device) }
    for delivery in missed { emit(delivery, to: device, session, mode) }
    return Set(missed.filter { $0.message.body.isRing }.compactMap(\.message.call))
  }

  mutating func unsubscribe(_ session: SessionID) {
    guard let device = directory.device(of: session) else { return }
    directory[device]?.connection?.events = nil
    directory[device]?.connection?.greeting = nil
    directory[device]?.mailbox.goAway(now: now)
    watch(device)
  }

  mutating func acknowledge(_ session: SessionID, _ seqs: [UInt64], accepted: Bool) {
    guard let device = directory.device(of: session), let mode = directory[device]?.connection?.events else { return }
    for seq in seqs {
      for event in directory[device]?.mailbox.acknowledge(seq, all: mode == .client) ?? [] {
        acknowledge(event, by: device, accepted: accepted)
      }
    }
  }

  // MARK: devices that are away

  /// Sets the timer that clears the events kept for the device.
  mutating func watch(_ device: Device) {
    away.insert(device)
    clearSoon()
  }

  mutating func clearSoon() {
    if nextSweep == nil { nextSweep = now + configuration.eventLifetime }
  }

  /// Clears expired events, and devices that are no longer needed.
  mutating func clearMailboxes() {
    var stillAway: Set<Device> = []
    let limits = mailboxLimits
    for device in away {
      if isForgettable(device) {
        dismiss(.user(device.user))
        continue
      }
      guard let record = directory[device], record.connection?.events == nil else { continue }
      directory[device]?.mailbox.expire(limits, now: now)
      let isNeeded = record.connection != nil || record.entry != nil || isParticipant(device)
      if directory[device]?.mailbox.isEmpty == false {
        stillAway.insert(device)
      } else if !isNeeded {
        forget(device)
      } else if record.entry == nil {
        stillAway.insert(device)
      }
    }
    away = stillAway
    let isAwaited = presence.clear(now: now)
    nextSweep = away.isEmpty && !isAwaited ? nil : now + configuration.eventLifetime
  }

}

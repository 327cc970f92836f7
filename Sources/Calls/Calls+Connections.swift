import Contract
import MediaModel

/// Connections, subscriptions and acknowledgements (protocol sections 2 and 3).
extension Calls {
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
    setSignaling(of: identity.device, isUp: true)
    watch(identity.device)
  }

  private mutating func replace(_ old: SessionID) {
    effects.append(.close(old, reason: "replaced by a newer connection"))
    drop(old)
  }

  /// Removes the subscriptions, watches and questions of a session.
  mutating func drop(_ session: SessionID) {
    topics.remove(session)
    presence.unwatch(session)
    questions.drop(session)
  }

  mutating func disconnect(_ session: SessionID) {
    drop(session)
    services.disconnect(session)
    guard let device = directory.disconnect(session) else { return }
    directory[device]?.mailbox.goAway(now: now)
    watch(device)
    notePresence(of: device.user)
    setSignaling(of: device, isUp: false)
  }

  /// A connection of the user ended; perhaps it was the last.
  mutating func notePresence(of user: UserID) {
    guard !directory.isConnected(user) else { return }
    presence.depart(user, now: now)
    presence.touch(user)
  }

  private mutating func setSignaling(of device: Device, isUp: Bool) {
    for call in memberships[device.user] ?? [] {
      var out = Outputs()
      calls[call]?.signaling(of: device, isUp: isUp, now: now, out: &out)
      carryOut(out, of: call)
    }
  }

  /// The device reads its events. First comes the state of each call that it is in (rule 16), then what it missed, then rings that last (rule 1).
  mutating func subscribe(_ session: SessionID, _ mode: AckMode) {
    guard let device = directory.device(of: session), directory[device]?.connection?.events == nil else { return }
    let isFirst = directory[device]?.connection?.isGreeted == false
    directory[device]?.connection?.events = mode
    directory[device]?.connection?.isGreeted = true
    let places = memberships[device.user] ?? []
    if isFirst {
      for id in places {
        guard let call = calls[id], call.member(device.user)?.participant(on: device) != nil else { continue }
        deliver(makeMessage(.state(call.state), of: id), to: device)
      }
    }
    let limits = mailboxLimits
    let missed =
      directory[device]?.mailbox.comeBack(isNewConnection: isFirst, mode: mode, limits: limits, now: now) ?? []
    if directory[device]?.mailbox.isStored == true { journal.mailboxes.insert(device) }
    for delivery in missed { emit(delivery, to: device, session, mode) }
    if isFirst {
      let rung = Set(missed.filter { $0.message.body.isRing }.compactMap(\.message.call))
      for id in places where !rung.contains(id) {
        guard let call = calls[id], call.member(device.user)?.isRinging == true,
          let ring = call.ring(for: device, members: call.members.map(\.state))
        else { continue }
        deliver(makeMessage(.ring(ring), of: id), to: device)
      }
    }
    acknowledgeWritten()
  }

  mutating func unsubscribe(_ session: SessionID) {
    guard let device = directory.device(of: session) else { return }
    directory[device]?.connection?.events = nil
    directory[device]?.mailbox.goAway(now: now)
    watch(device)
  }

  mutating func acknowledge(_ session: SessionID, _ seq: UInt64, accepted: Bool) {
    guard let device = directory.device(of: session), let mode = directory[device]?.connection?.events else { return }
    for event in directory[device]?.mailbox.acknowledge(seq, all: mode == .client) ?? [] {
      acknowledge(event, by: device, accepted: accepted)
    }
    acknowledgeWritten()
  }

  // MARK: devices that are away

  /// Sees to it that what is kept for the device is cleared in time.
  mutating func watch(_ device: Device) {
    away.insert(device)
    clearSoon()
  }

  mutating func clearSoon() {
    if nextSweep == nil { nextSweep = now + configuration.eventLifetime }
  }

  /// Clears what was kept too long, and devices that nobody needs to know.
  mutating func clearMailboxes() {
    var stillAway: Set<Device> = []
    let limits = mailboxLimits
    for device in away {
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

  func isParticipant(_ device: Device) -> Bool {
    (memberships[device.user] ?? []).contains { calls[$0]?.member(device.user)?.participant(on: device) != nil }
  }
}

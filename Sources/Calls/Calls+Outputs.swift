import Contract
import MediaModel

/// Carrying out what a call's transition asks for.
extension Calls {
  var mailboxLimits: Mailbox.Limits {
    Mailbox.Limits(
      lifetime: configuration.eventLifetime, count: configuration.maximumKeptEvents,
      bytes: configuration.maximumKeptBytes)
  }

  mutating func carryOut(_ outputs: Outputs, of call: CallID) {
    journal.calls.insert(call)
    for item in outputs.items { carryOut(item, of: call) }
    acknowledgeWritten()
  }

  private mutating func carryOut(_ item: Outputs.Item, of call: CallID) {
    switch item {
    case .event(let audience, let body): send(body, of: call, to: audience)
    case .ring(let users): ring(users, call)
    case .ringEnvelopesSuperseded(let devices): for device in devices { directory[device]?.mailbox.stripRing(of: call) }
    case .envelopesSuperseded(let devices, let epoch):
      for device in devices {
        directory[device]?.mailbox.dropEnvelopes(of: call, olderThan: epoch)
        journal.mailboxes.insert(device)
      }
    case .participantGone(let device):
      directory[device]?.mailbox.dropParticipantEvents(of: call)
      journal.mailboxes.insert(device)
    case .made: tellOfNewCall(call)
    case .memberAdded(let user): memberships[user, default: []].append(call)
    case .memberMoved(let user): follow(user, in: call)
    case .pushOver(let user): pushCancel(of: user, call)
    case .peerAdded(let peer, let user): peers[peer] = (call, user)
    case .peerGone(let peer):
      if peers.removeValue(forKey: peer) != nil { effects.append(.media(.remove(peer))) }
    case .media(let command): effects.append(.media(command))
    case .setTimer(let timer, let due):
      timers.set(timer, of: call, at: due)
      note(timer, due, of: call)
    case .cancelTimer(let timer):
      timers.cancel(timer, of: call)
      note(timer, nil, of: call)
    case .ended(let ended): forget(call, ended)
    }
  }

  /// With `auto` an event counts as acknowledged when written; what follows from that comes after all that was written with it.
  mutating func acknowledgeWritten() {
    while !written.isEmpty {
      let events = written
      written = []
      for (device, event) in events { acknowledge(event, by: device, accepted: true) }
    }
  }

  /// Envelopes have rules of their own; of all others an acknowledgement says no more than that they came.
  mutating func acknowledge(_ event: EventMessage, by device: Device, accepted: Bool) {
    guard let call = event.call else { return }
    switch event.body {
    case .envelope(let envelope):
      journal.mailboxes.insert(device)
      var out = Outputs()
      calls[call]?.acknowledge(device, epoch: envelope.epoch, accepted: accepted, now: now, out: &out)
      journal.calls.insert(call)
      for item in out.items { carryOut(item, of: call) }
    case .ring(let ring):
      guard ring.envelope != nil else { return }
      calls[call]?.ringAcknowledged(device)
      journal.calls.insert(call)
    default: break
    }
  }

  // MARK: delivery

  private mutating func send(_ body: EventBody, of call: CallID, to audience: Outputs.Audience) {
    let message = makeMessage(body, of: call)
    switch audience {
    case .devices(let devices): for device in devices { deliver(message, to: device) }
    case .users(let users):
      for user in users { for device in directory.devices(of: user) { deliver(message, to: device) } }
    case .rung(let user, let actor):
      for device in directory.devices(of: user) {
        let wasRung = directory[device]?.mailbox.endRing(of: call) ?? false
        if wasRung { journal.mailboxes.insert(device) }
        if wasRung, device.device != actor { deliver(message, to: device) }
      }
    }
    publish(message, of: call)
  }

  private mutating func ring(_ users: [UserID], _ id: CallID) {
    guard !users.isEmpty, let call = calls[id] else { return }
    let members = call.members.map(\.state)
    for user in users {
      // Without an envelope all devices get the same.
      var shared: Message?
      for device in directory.devices(of: user) {
        guard let ring = call.ring(for: device, members: members) else { continue }
        let message =
          ring.envelope == nil ? shared ?? makeMessage(.ring(ring), of: id) : makeMessage(.ring(ring), of: id)
        if ring.envelope == nil { shared = message }
        deliver(message, to: device)
      }
    }
    publishRing(of: users, call, members)
    push(to: users, of: id)
  }

  /// Writes to the device's subscription; keeps the event when there is none.
  mutating func deliver(_ message: Message, to device: Device) {
    let limits = mailboxLimits
    guard let connection = directory[device]?.connection, let mode = connection.events else {
      if isAcknowledgedSpecially(message.event.body) { journal.mailboxes.insert(device) }
      if directory[device]?.mailbox.keep(message, limits: limits, now: now) == true { watch(device) }
      return
    }
    guard let delivery = directory[device]?.mailbox.write(message, mode: mode, limits: limits, now: now) else {
      return
    }
    emit(delivery, to: device, connection.session, mode)
  }

  func isAcknowledgedSpecially(_ body: EventBody) -> Bool { body.isEnvelope || body.isRing }

  mutating func emit(_ delivery: EventDelivery, to device: Device, _ session: SessionID, _ mode: AckMode) {
    effects.append(.event(session, delivery))
    guard isAcknowledgedSpecially(delivery.message.body) else { return }
    journal.mailboxes.insert(device)
    if mode == .auto { written.append((device, delivery.message)) }
  }

  // MARK: the end

  private mutating func forget(_ id: CallID, _ end: Ended) {
    guard var call = calls.removeValue(forKey: id) else { return }
    close(&call, end)
    timers.cancelAll(of: id)
    starts[call.startToken] = nil
    topics.remove(.call(id))
    for member in call.members {
      presence.touch(member.user)
      memberships[member.user]?.removeAll { $0 == id }
      if memberships[member.user]?.isEmpty == true { memberships[member.user] = nil }
    }
    if let reply = call.firstReply {
      ended.add(call, end: EventMessage(at: now, call: id, body: .ended(end)), reply: reply)
    }
  }
}

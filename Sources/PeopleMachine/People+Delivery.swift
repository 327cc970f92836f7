import CallMessages
import Contract
import MediaModel

/// The news of calls, and its delivery to each device.
extension People {
  var mailboxLimits: Mailbox.Limits {
    Mailbox.Limits(
      lifetime: configuration.eventLifetime, count: configuration.maximumKeptEvents,
      bytes: configuration.maximumKeptBytes)
  }

  mutating func take(_ news: CallNews, of call: CallID, rev: UInt64?) {
    switch news {
    case .made(let state): tellOfNewCall(call, state)
    case .event(let audience, let body): tell(body, of: call, rev, to: audience)
    case .ring(let rings, let envelopes, let list, let topic):
      ring(rings, envelopes, list, of: call)
      if let topic { publish(topic, of: call) }
      push(rings, of: call)
    case .ringEnvelopesSuperseded(let devices):
      for device in devices { directory[device]?.mailbox.stripRing(of: call) }
    case .envelopesSuperseded(let devices, let epoch):
      for device in devices {
        directory[device]?.mailbox.dropEnvelopes(of: call, olderThan: epoch)
        journal.mailboxes.insert(device)
      }
    case .participantGone(let device):
      directory[device]?.mailbox.dropParticipantEvents(of: call)
      journal.mailboxes.insert(device)
    case .member(let user, let part): follow(user, part, in: call)
    case .pushOver(let user): pushCancel(of: user, call)
    case .guestRemoved(let user): dismiss(.user(user))
    case .linkOpened(let link, let user, let made): open(link, of: user, made, of: call)
    case .linksVoid: closeLink(of: call)
    case .over(let users): end(call, for: users)
    }
  }

  /// Envelopes and alerts have separate rules. For all other events an acknowledgement only says that they arrived.
  mutating func acknowledge(_ event: EventMessage, by device: Device, accepted: Bool) {
    if let recording = event.body.alertedRecording, accepted { return reach(recording, by: device) }
    guard let call = event.call else { return }
    switch event.body {
    case .envelope(let envelope):
      journal.mailboxes.insert(device)
      send(.acknowledged(device, epoch: envelope.epoch, accepted: accepted, in: call))
    case .ring(let ring): if ring.envelope != nil { send(.ringAcknowledged(device, in: call)) }
    default: break
    }
  }

  // MARK: delivery

  private mutating func tell(_ body: EventBody, of call: CallID, _ rev: UInt64?, to audience: CallNews.Audience) {
    let message = makeMessage(body, of: call, rev: rev)
    switch audience {
    case .devices(let devices): for device in devices { deliver(message, to: device) }
    case .users(let users):
      for user in users { for device in directory.devices(of: user) { deliver(message, to: device) } }
    case .alone(let user):
      for device in directory.devices(of: user) { deliver(message, to: device) }
      return
    case .rung(let user, let actor):
      for device in directory.devices(of: user) {
        // The call's answer for a device that has just come may be older.
        directory[device]?.connection?.greeting?.rings[call] = nil
        let wasRung = directory[device]?.mailbox.endRing(of: call) ?? false
        if wasRung { journal.mailboxes.insert(device) }
        if wasRung, device.device != actor { deliver(message, to: device) }
      }
    }
    publish(message, of: call)
  }

  private mutating func ring(
    _ rings: [MemberRing], _ envelopes: [Device: Envelope], _ list: [ListEntry], of call: CallID
  ) {
    for member in rings {
      // Without an envelope all devices get the same message.
      var shared: Message?
      let devices = directory.devices(of: member.user)
      // The user was forgotten, or has no device any longer, since the call was asked to ring the user.
      if devices.isEmpty { send(.remove(.user(member.user), from: call)) }
      for device in devices {
        guard let envelope = envelopes[device] else {
          let message = shared ?? makeMessage(.ring(member.ring), of: call)
          shared = message
          deliver(message, to: device)
          continue
        }
        var ring = member.ring
        ring.envelope = envelope
        ring.list = list
        deliver(makeMessage(.ring(ring), of: call), to: device)
      }
    }
  }

  /// Writes to the device's subscription; keeps the event if there is none.
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

  mutating func emit(_ delivery: EventDelivery, to device: Device, _ session: SessionID, _ mode: AcknowledgementMode) {
    out.effects.append(.client(.event(session, delivery)))
    if mode == .auto, delivery.message.body.alertedRecording != nil {
      return acknowledge(delivery.message, by: device, accepted: true)
    }
    guard isAcknowledgedSpecially(delivery.message.body) else { return }
    journal.mailboxes.insert(device)
    // With `auto` an event counts as acknowledged when written.
    if mode == .auto { acknowledge(delivery.message, by: device, accepted: true) }
  }
}

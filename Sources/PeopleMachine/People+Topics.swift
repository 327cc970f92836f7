import CallMessages
import Contract
import MediaModel

/// `/topic/calls/{id}` and `/topic/service/…` (protocol sections 3 and 11).
extension People {
  mutating func subscribe(_ session: SessionID, to channel: Channel) {
    guard let identity = identity(of: session) else { return }
    switch channel {
    case .replies, .events: break
    case .serviceCalls, .servicePush, .serviceReports:
      guard identity.isService else {
        return refuse(session, channel, "only a service may subscribe to this destination")
      }
      admit(session, to: channel)
    case .call(let id):
      let user = identity.device.user
      guard !identity.isService, identity.guestOf ?? id == id else { return admit(session, to: id, .stranger) }
      guard part(of: user, in: id)?.isListening != true else { return admit(session, to: channel) }
      send(.readTopic(session, user, of: id))
    }
  }

  /// The call's answer about a user who was not known to be a listener.
  mutating func admit(_ session: SessionID, to call: CallID, _ answer: ToPeople.TopicAnswer) {
    guard let user = identity(of: session)?.device.user else { return }
    let channel = Channel.call(call)
    switch answer {
    // Reported before the answer, unless that has changed again.
    case .listener where part(of: user, in: call)?.isListening == true: admit(session, to: channel)
    case .over(let ended, let at):
      let end = EventMessage(at: at, call: call, body: .ended(ended))
      out.effects.append(.client(.admission(session, channel, refusal: nil)))
      out.effects.append(.client(.publish(session, channel, messageID: Message.unshared, end)))
    case .listener, .stranger:
      refuse(session, channel, "only who is joined, ringing or disconnected in a call may read its topic")
    }
  }

  private mutating func admit(_ session: SessionID, to channel: Channel) {
    guard topics.add(session, to: channel) else {
      return refuse(session, channel, "this destination has as many subscribers as it may")
    }
    out.effects.append(.client(.admission(session, channel, refusal: nil)))
  }

  private mutating func refuse(_ session: SessionID, _ channel: Channel, _ why: String) {
    out.effects.append(.client(.admission(session, channel, refusal: why)))
  }

  /// For the topic of the call and, if it concerns them, the services.
  mutating func publish(_ message: Message, of call: CallID) {
    guard message.event.body.isPublic else { return }
    write(message, to: .call(call))
    if message.event.body.isForServices { tellService(.serviceCalls, message) }
  }

  mutating func write(_ message: Message, to channel: Channel) {
    for session in topics.readers(of: channel) {
      out.effects.append(.client(.publish(session, channel, messageID: message.id, message.event)))
    }
  }

  /// One `call.ring` for all who are rung at once: the topic does not name the recipient.
  mutating func publish(_ ring: Ring, of call: CallID) {
    let channel = Channel.call(call)
    if topics.isRead(channel) { write(makeMessage(.ring(ring), of: call), to: channel) }
    var ring = ring
    ring.metadata = nil
    tellService(.serviceCalls, makeMessage(.ring(ring), of: call))
  }

  mutating func stopReading(_ user: UserID, _ channel: Channel) {
    guard topics.isRead(channel) else { return }
    for device in directory.devices(of: user) {
      if let session = directory[device]?.connection?.session { topics.remove(session, from: channel) }
    }
  }

  // MARK: what services are told

  mutating func tellService(_ channel: Channel, _ message: Message) {
    write(message, to: channel)
    out.effects.append(.webhook(channel, message.event))
  }

  /// A browser that comes back later shows nothing about the ring.
  private static let ringOverLifetime = Duration.seconds(60)

  /// `push.ring`: for devices of these users that have to be woken.
  mutating func push(_ rings: [MemberRing], of call: CallID) {
    for member in rings {
      let user = member.user
      let asleep = sleepingDevices(of: user)
      guard !asleep.isEmpty else { continue }
      let ring = PushRing(
        user: user, devices: asleep, from: member.ring.from, media: member.ring.media,
        expiresAt: member.ring.expiresAt)
      tellService(.servicePush, makeMessage(.pushRing(ring), of: call))
      let from = member.ring.from
      let notice = PushNotice(
        type: .ring, call: call.text, from: from.text, name: pushName(of: from), media: member.ring.media)
      sendPush(notice, to: user, until: member.ring.expiresAt)
      send(.pushed(user, in: call))
    }
  }

  /// Those with keys that are not connected.
  func sleepingDevices(of user: UserID) -> [DeviceID] {
    directory.entries(of: user).map(\.device).filter { !directory.isConnected(Device(user: user, device: $0)) }
  }

  /// nil if it is too long for a push.
  func pushName(of user: UserID) -> String? {
    directory.name(of: user).flatMap { $0.utf8.count <= PushNotice.maximumNameBytes ? $0 : nil }
  }

  /// The ring is answered or over.
  mutating func pushCancel(of user: UserID, _ call: CallID) {
    tellService(.servicePush, makeMessage(.pushCancel(PushCancel(user: user)), of: call))
    let notice = PushNotice(type: .ringOver, call: call.text)
    sendPush(notice, to: user, until: now + Self.ringOverLifetime)
  }

  mutating func tellOfNewCall(_ call: CallID, _ state: CallState) {
    tellService(.serviceCalls, makeMessage(.state(state), of: call))
  }
}

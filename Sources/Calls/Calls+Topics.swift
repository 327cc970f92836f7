import Contract
import MediaModel

/// `/topic/calls/{id}` and `/topic/service/…` (protocol sections 3 and 11).
extension Calls {
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
      if !identity.isService, calls[id]?.member(user)?.isListening == true { return admit(session, to: channel) }
      guard !identity.isService, let end = ended.end(of: id, for: user) else {
        return refuse(session, channel, "only who is joined, ringing or disconnected in a call may read its topic")
      }
      effects.append(.admission(session, channel, refusal: nil))
      effects.append(.publish(session, channel, messageID: Message.unshared, end))
    }
  }

  private mutating func admit(_ session: SessionID, to channel: Channel) {
    guard topics.add(session, to: channel) else {
      return refuse(session, channel, "this destination has as many subscribers as it may")
    }
    effects.append(.admission(session, channel, refusal: nil))
  }

  private mutating func refuse(_ session: SessionID, _ channel: Channel, _ why: String) {
    effects.append(.admission(session, channel, refusal: why))
  }

  /// For the topic of the call and, where they concern them, the services.
  mutating func publish(_ message: Message, of call: CallID) {
    guard message.event.body.isPublic else { return }
    write(message, to: .call(call))
    if message.event.body.isForServices { tellService(.serviceCalls, message) }
  }

  mutating func write(_ message: Message, to channel: Channel) {
    for session in topics.readers(of: channel) {
      effects.append(.publish(session, channel, messageID: message.id, message.event))
    }
  }

  /// One `call.ring` for all who are rung at once: the topic does not say whose it is.
  mutating func publishRing(of users: [UserID], _ call: Call, _ members: [MemberState]) {
    let channel = Channel.call(call.id)
    guard topics.isRead(channel) || isHeard(.serviceCalls),
      var ring = users.lazy.compactMap({ call.publicRing(of: $0, members: members) }).first
    else { return }
    if topics.isRead(channel) { write(makeMessage(.ring(ring), of: call.id), to: channel) }
    ring.metadata = nil
    if isHeard(.serviceCalls) { tellService(.serviceCalls, makeMessage(.ring(ring), of: call.id)) }
  }

  /// The member is somewhere else: its devices may read no more, or its presence is another.
  mutating func follow(_ user: UserID, in id: CallID) {
    presence.touch(user)
    let channel = Channel.call(id)
    guard topics.isRead(channel), calls[id]?.member(user)?.isListening != true else { return }
    for device in directory.devices(of: user) {
      if let session = directory[device]?.connection?.session { topics.remove(session, from: channel) }
    }
  }
}

extension Call {
  /// `call.ring` for a topic: without what is one device's or one callee's own.
  func publicRing(of user: UserID, members: [MemberState]) -> Ring? {
    guard case .ringing(let ringing)? = member(user)?.phase else { return nil }
    return Ring(
      from: ringing.by, media: media, members: members, waiting: false, expiresAt: ringing.expiresAt,
      metadata: metadata, envelope: nil, list: nil)
  }
}

extension EventBody {
  /// On the call's topic. `call.ring` gets there in a form of its own; `call.state` is for one device.
  var isPublic: Bool {
    switch self {
    case .trackAdded, .trackUpdated, .trackRemoved, .speakers: true
    default: isForServices
    }
  }

  /// On `/topic/service/calls`.
  var isForServices: Bool {
    switch self {
    case .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .member, .ended: true
    default: false
    }
  }
}

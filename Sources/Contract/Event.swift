package import MediaModel

/// The name of an event, as in the header `event` (protocol sections 4 to 7 and 11).
package enum EventName: String, Codable, Sendable, CaseIterable {
  case callRing = "call.ring"
  case callAnsweredElsewhere = "call.answered-elsewhere"
  case callDeclinedElsewhere = "call.declined-elsewhere"
  case callCancelled = "call.cancelled"
  case callMissed = "call.missed"
  case callMember = "call.member"
  case callMembers = "call.members"
  case callState = "call.state"
  case callEnded = "call.ended"
  case trackAdded = "track.added"
  case trackUpdated = "track.updated"
  case trackRemoved = "track.removed"
  case speakers
  case keysRotate = "keys.rotate"
  case keysEnvelope = "keys.envelope"
  case keysSwitch = "keys.switch"
  case keysRequest = "keys.request"
  case keysWaiting = "keys.waiting"
  case keysConfirmed = "keys.confirmed"
  case keysDevicesChanged = "keys.devices-changed"
  case devicePair = "device.pair"
  case mediaSlots = "media.slots"
  case mediaNeed = "media.need"
  case mediaWanted = "media.wanted"
  case quality, message, presence
  case pushRing = "push.ring"
  case pushCancel = "push.cancel"
  case report
}

/// The body of an event. `EventMessage` adds the headers `event` and `seq` and the members `at` and `call`.
package enum EventBody: Sendable, Hashable {
  case ring(Ring)
  case answeredElsewhere(By)
  case declinedElsewhere(By)
  case cancelled(By)
  case missed(By)
  case member(MemberChange)
  case members(MemberChanges)
  case state(CallState)
  case ended(Ended)
  case trackAdded(TrackChange)
  case trackUpdated(TrackChange)
  case trackRemoved(TrackChange)
  case speakers(Speakers)
  case rotate(Rotate)
  case envelope(Envelope)
  case switchKeys(SwitchKeys)
  case keyRequest(KeyRequest)
  case keyWaiting(KeysWaiting)
  case confirmed(KeysConfirmed)
  case devicesChanged(DevicesChanged)
  case pairing(PairingMessage)
  case slots(Slots)
  case need(Need)
  case wanted(Wanted)
  case quality(Quality)
  case message(CallMessage)
  case presence(PresenceState)
  case pushRing(PushRing)
  case pushCancel(PushCancel)
  case report(Report)

  package var name: EventName {
    switch self {
    case .ring: .callRing
    case .answeredElsewhere: .callAnsweredElsewhere
    case .declinedElsewhere: .callDeclinedElsewhere
    case .cancelled: .callCancelled
    case .missed: .callMissed
    case .member: .callMember
    case .members: .callMembers
    case .state: .callState
    case .ended: .callEnded
    case .trackAdded: .trackAdded
    case .trackUpdated: .trackUpdated
    case .trackRemoved: .trackRemoved
    case .speakers: .speakers
    case .rotate: .keysRotate
    case .envelope: .keysEnvelope
    case .switchKeys: .keysSwitch
    case .keyRequest: .keysRequest
    case .keyWaiting: .keysWaiting
    case .confirmed: .keysConfirmed
    case .devicesChanged: .keysDevicesChanged
    case .pairing: .devicePair
    case .slots: .mediaSlots
    case .need: .mediaNeed
    case .wanted: .mediaWanted
    case .quality: .quality
    case .message: .message
    case .presence: .presence
    case .pushRing: .pushRing
    case .pushCancel: .pushCancel
    case .report: .report
    }
  }

  private var content: any Codable {
    switch self {
    case .ring(let body): body
    case .answeredElsewhere(let body), .declinedElsewhere(let body), .cancelled(let body), .missed(let body): body
    case .member(let body): body
    case .members(let body): body
    case .state(let body): body
    case .ended(let body): body
    case .trackAdded(let body), .trackUpdated(let body), .trackRemoved(let body): body
    case .speakers(let body): body
    case .rotate(let body): body
    case .envelope(let body): body
    case .switchKeys(let body): body
    case .keyRequest(let body): body
    case .keyWaiting(let body): body
    case .confirmed(let body): body
    case .devicesChanged(let body): body
    case .pairing(let body): body
    case .slots(let body): body
    case .need(let body): body
    case .wanted(let body): body
    case .quality(let body): body
    case .message(let body): body
    case .presence(let body): body
    case .pushRing(let body): body
    case .pushCancel(let body): body
    case .report(let body): body
    }
  }

  /// Whether it changes `CallState`, so that it has a revision.
  package var changesState: Bool {
    switch self {
    case .member, .members, .trackAdded, .trackUpdated, .trackRemoved, .switchKeys: true
    case .ring, .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .state, .speakers, .rotate, .envelope,
      .keyRequest, .keyWaiting, .confirmed, .devicesChanged, .pairing, .slots, .need, .wanted, .quality, .message,
      .presence, .pushRing, .pushCancel, .report, .ended:
      false
    }
  }

  fileprivate func encodeContent(to encoder: any Encoder) throws { try content.encode(to: encoder) }

  fileprivate init(_ name: EventName, from decoder: any Decoder) throws {
    switch name {
    case .callRing: self = .ring(try Ring(from: decoder))
    case .callAnsweredElsewhere: self = .answeredElsewhere(try By(from: decoder))
    case .callDeclinedElsewhere: self = .declinedElsewhere(try By(from: decoder))
    case .callCancelled: self = .cancelled(try By(from: decoder))
    case .callMissed: self = .missed(try By(from: decoder))
    case .callMember: self = .member(try MemberChange(from: decoder))
    case .callMembers: self = .members(try MemberChanges(from: decoder))
    case .callState: self = .state(try CallState(from: decoder))
    case .callEnded: self = .ended(try Ended(from: decoder))
    case .trackAdded: self = .trackAdded(try TrackChange(from: decoder))
    case .trackUpdated: self = .trackUpdated(try TrackChange(from: decoder))
    case .trackRemoved: self = .trackRemoved(try TrackChange(from: decoder))
    case .speakers: self = .speakers(try Speakers(from: decoder))
    case .keysRotate: self = .rotate(try Rotate(from: decoder))
    case .keysEnvelope: self = .envelope(try Envelope(from: decoder))
    case .keysSwitch: self = .switchKeys(try SwitchKeys(from: decoder))
    case .keysRequest: self = .keyRequest(try KeyRequest(from: decoder))
    case .keysWaiting: self = .keyWaiting(try KeysWaiting(from: decoder))
    case .keysConfirmed: self = .confirmed(try KeysConfirmed(from: decoder))
    case .devicePair: self = .pairing(try PairingMessage(from: decoder))
    case .keysDevicesChanged: self = .devicesChanged(try DevicesChanged(from: decoder))
    case .mediaSlots: self = .slots(try Slots(from: decoder))
    case .mediaNeed: self = .need(try Need(from: decoder))
    case .mediaWanted: self = .wanted(try Wanted(from: decoder))
    case .quality: self = .quality(try Quality(from: decoder))
    case .message: self = .message(try CallMessage(from: decoder))
    case .presence: self = .presence(try PresenceState(from: decoder))
    case .pushRing: self = .pushRing(try PushRing(from: decoder))
    case .pushCancel: self = .pushCancel(try PushCancel(from: decoder))
    case .report: self = .report(try Report(from: decoder))
    }
  }
}

/// An event's whole JSON body: `at`, `call` if it is about one, and beside them the content's members.
package struct EventMessage: Sendable, Hashable, Encodable {
  package var at: Timestamp
  package var call: CallID?
  /// The call's revision after this change of its state; nil for events that don't change it, and for `call.state`, whose body has it.
  package var rev: UInt64?
  package var body: EventBody

  package init(at: Timestamp, call: CallID?, rev: UInt64? = nil, body: EventBody) {
    self.at = at
    self.call = call
    self.rev = rev
    self.body = body
  }

  private enum CodingKeys: String, CodingKey { case at, call, rev }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(at, forKey: .at)
    try container.encodeIfPresent(call, forKey: .call)
    try container.encodeIfPresent(rev, forKey: .rev)
    try body.encodeContent(to: encoder)
  }

  /// Reads the body of an event of the given name, as a client does.
  package init(_ name: EventName, from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    at = try container.decode(Timestamp.self, forKey: .at)
    call = try container.decodeIfPresent(CallID.self, forKey: .call)
    body = try EventBody(name, from: decoder)
    rev = body.changesState ? try container.decodeIfPresent(UInt64.self, forKey: .rev) : nil
  }
}

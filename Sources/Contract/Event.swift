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
  case guestKnock = "guest.knock"
  case guestKnockOver = "guest.knock-over"
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
  case recordingShared = "recording.shared"
  case recordingChanged = "recording.changed"
  case recordingSeen = "recording.seen"
  case recordingReached = "recording.reached"
  case recordingRemoved = "recording.removed"
  case recordingStarted = "recording.started"
  case recordingConsent = "recording.consent"
  case recordingRunning = "recording.running"
  case recordingStopped = "recording.stopped"
  case mediaSlots = "media.slots"
  case mediaNeed = "media.need"
  case mediaWanted = "media.wanted"
  case quality, message, presence
  case linkChanged = "link.changed"
  case linkWaiting = "link.waiting"
  case pushRing = "push.ring"
  case pushCancel = "push.cancel"
  case pushMessage = "push.message"
  case pushAlert = "push.alert"
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
  case knock(GuestKnock)
  case knockOver(KnockOver)
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
  case recordingShared(RecordingShared)
  case recordingChanged(RecordingChanged)
  case recordingSeen(RecordingMention)
  case recordingReached(RecordingMention)
  case recordingRemoved(RecordingRemoved)
  case recordingStarted(RecordingStarted)
  case recordingConsent(RecordingConsent)
  case recordingRuns(RecordingRuns)
  case recordingStopped(RecordingStopped)
  case slots(Slots)
  case need(Need)
  case wanted(Wanted)
  case quality(Quality)
  case message(CallMessage)
  case presence(PresenceState)
  case linkChanged(LinkChanged)
  case linkWaiting(LinkWaiting)
  case pushRing(PushRing)
  case pushCancel(PushCancel)
  case pushMessage(PushRecording)
  case pushAlert(PushRecording)
  case report(Report)

  package var name: EventName { row.name }

  /// The approximate number of bytes that it takes in memory or on the wire, at least as many as its JSON.
  package var cost: Int { row.content.cost }

  package var declaration: EventDeclaration { name.declaration }

  /// Whether it changes `CallState`, so that it has a revision.
  package var changesState: Bool { declaration.traits.contains(.changesState) }

  /// Inlined, so that the name alone needs no box for the content.
  @inline(__always)
  private var row: (name: EventName, content: any EventContent) {
    switch self {
    case .ring(let body): (.callRing, body)
    case .answeredElsewhere(let body): (.callAnsweredElsewhere, body)
    case .declinedElsewhere(let body): (.callDeclinedElsewhere, body)
    case .cancelled(let body): (.callCancelled, body)
    case .missed(let body): (.callMissed, body)
    case .member(let body): (.callMember, body)
    case .members(let body): (.callMembers, body)
    case .state(let body): (.callState, body)
    case .knock(let body): (.guestKnock, body)
    case .knockOver(let body): (.guestKnockOver, body)
    case .ended(let body): (.callEnded, body)
    case .trackAdded(let body): (.trackAdded, body)
    case .trackUpdated(let body): (.trackUpdated, body)
    case .trackRemoved(let body): (.trackRemoved, body)
    case .speakers(let body): (.speakers, body)
    case .rotate(let body): (.keysRotate, body)
    case .envelope(let body): (.keysEnvelope, body)
    case .switchKeys(let body): (.keysSwitch, body)
    case .keyRequest(let body): (.keysRequest, body)
    case .keyWaiting(let body): (.keysWaiting, body)
    case .confirmed(let body): (.keysConfirmed, body)
    case .devicesChanged(let body): (.keysDevicesChanged, body)
    case .pairing(let body): (.devicePair, body)
    case .recordingShared(let body): (.recordingShared, body)
    case .recordingChanged(let body): (.recordingChanged, body)
    case .recordingSeen(let body): (.recordingSeen, body)
    case .recordingReached(let body): (.recordingReached, body)
    case .recordingRemoved(let body): (.recordingRemoved, body)
    case .recordingStarted(let body): (.recordingStarted, body)
    case .recordingConsent(let body): (.recordingConsent, body)
    case .recordingRuns(let body): (.recordingRunning, body)
    case .recordingStopped(let body): (.recordingStopped, body)
    case .slots(let body): (.mediaSlots, body)
    case .need(let body): (.mediaNeed, body)
    case .wanted(let body): (.mediaWanted, body)
    case .quality(let body): (.quality, body)
    case .message(let body): (.message, body)
    case .presence(let body): (.presence, body)
    case .linkChanged(let body): (.linkChanged, body)
    case .linkWaiting(let body): (.linkWaiting, body)
    case .pushRing(let body): (.pushRing, body)
    case .pushCancel(let body): (.pushCancel, body)
    case .pushMessage(let body): (.pushMessage, body)
    case .pushAlert(let body): (.pushAlert, body)
    case .report(let body): (.report, body)
    }
  }

  func encodeContent(to encoder: any Encoder) throws { try row.content.encode(to: encoder) }
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
    body = try name.declaration.read(decoder)
    rev = body.changesState ? try container.decodeIfPresent(UInt64.self, forKey: .rev) : nil
  }
}

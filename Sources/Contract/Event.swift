package import MediaModel

/// The name of an event, as in the header `event` (protocol sections 4 to 7 and 11).
package enum EventName: String, Codable, Sendable, CaseIterable {
  case callRing = "call.ring"
  case callAnsweredElsewhere = "call.answered-elsewhere"
  case callDeclinedElsewhere = "call.declined-elsewhere"
  case callCancelled = "call.cancelled"
  case callMissed = "call.missed"
  case callMember = "call.member"
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
  case keysDevicesChanged = "keys.devices-changed"
  case mediaSlots = "media.slots"
  case mediaNeed = "media.need"
  case quality, message, presence
  case pushRing = "push.ring"
  case pushCancel = "push.cancel"
  case report
}

/// What an event says; the headers `event` and `seq` and the members `at` and `call` are around it (`EventMessage`).
package enum EventBody: Sendable, Hashable {
  case ring(Ring)
  case answeredElsewhere(By)
  case declinedElsewhere(By)
  case cancelled(By)
  case missed(By)
  case member(MemberChange)
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
  case devicesChanged(DevicesChanged)
  case slots(Slots)
  case need(Need)
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
    case .devicesChanged: .keysDevicesChanged
    case .slots: .mediaSlots
    case .need: .mediaNeed
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
    case .state(let body): body
    case .ended(let body): body
    case .trackAdded(let body), .trackUpdated(let body), .trackRemoved(let body): body
    case .speakers(let body): body
    case .rotate(let body): body
    case .envelope(let body): body
    case .switchKeys(let body): body
    case .keyRequest(let body): body
    case .devicesChanged(let body): body
    case .slots(let body): body
    case .need(let body): body
    case .quality(let body): body
    case .message(let body): body
    case .presence(let body): body
    case .pushRing(let body): body
    case .pushCancel(let body): body
    case .report(let body): body
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
    case .keysDevicesChanged: self = .devicesChanged(try DevicesChanged(from: decoder))
    case .mediaSlots: self = .slots(try Slots(from: decoder))
    case .mediaNeed: self = .need(try Need(from: decoder))
    case .quality: self = .quality(try Quality(from: decoder))
    case .message: self = .message(try CallMessage(from: decoder))
    case .presence: self = .presence(try PresenceState(from: decoder))
    case .pushRing: self = .pushRing(try PushRing(from: decoder))
    case .pushCancel: self = .pushCancel(try PushCancel(from: decoder))
    case .report: self = .report(try Report(from: decoder))
    }
  }
}

/// An event's whole JSON body: `at`, `call` where it is about one, and the content's members beside them.
package struct EventMessage: Sendable, Hashable, Encodable {
  package var at: Timestamp
  package var call: CallID?
  package var body: EventBody

  package init(at: Timestamp, call: CallID?, body: EventBody) {
    self.at = at
    self.call = call
    self.body = body
  }

  private enum CodingKeys: String, CodingKey { case at, call }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(at, forKey: .at)
    try container.encodeIfPresent(call, forKey: .call)
    try body.encodeContent(to: encoder)
  }

  /// Reads the body of an event of the given name, as a client does.
  package init(_ name: EventName, from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    at = try container.decode(Timestamp.self, forKey: .at)
    call = try container.decodeIfPresent(CallID.self, forKey: .call)
    body = try EventBody(name, from: decoder)
  }
}

package struct Ring: Codable, Sendable, Hashable {
  package var from: UserID
  package var media: CallMedia
  package var members: [MemberState]
  package var waiting: Bool
  package var expiresAt: Timestamp
  package var metadata: Base64Bytes?
  package var envelope: Envelope?
  package var list: [ListEntry]?
  package init(
    from: UserID, media: CallMedia, members: [MemberState], waiting: Bool, expiresAt: Timestamp,
    metadata: Base64Bytes?, envelope: Envelope?, list: [ListEntry]?
  ) {
    self.from = from
    self.media = media
    self.members = members
    self.waiting = waiting
    self.expiresAt = expiresAt
    self.metadata = metadata
    self.envelope = envelope
    self.list = list
  }
}

package struct By: Codable, Sendable, Hashable {
  package var by: UserID?
  package init(by: UserID? = nil) { self.by = by }
}

package enum MemberCause: String, Codable, Sendable, CaseIterable {
  case invited, accepted, declined, missed, cancelled, left, joined, rejoined, disconnected, connected, transferred,
    held, failed
}

/// The member as in the state, `cause` beside its members.
package struct MemberChange: Codable, Sendable, Hashable {
  package var member: MemberState
  package var cause: MemberCause
  package init(member: MemberState, cause: MemberCause) {
    self.member = member
    self.cause = cause
  }

  private enum CodingKeys: String, CodingKey { case cause }

  package init(from decoder: any Decoder) throws {
    member = try MemberState(from: decoder)
    cause = try decoder.container(keyedBy: CodingKeys.self).decode(MemberCause.self, forKey: .cause)
  }

  package func encode(to encoder: any Encoder) throws {
    try member.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(cause, forKey: .cause)
  }
}

package enum EndReason: String, Codable, Sendable {
  case endedByInitiator = "ended-by-initiator"
  case allLeft = "all-left"
  case declined
  case noAnswer = "no-answer"
  case cancelled
  case expired
}

package struct Ended: Codable, Sendable, Hashable {
  package var reason: EndReason
  package var by: UserID?
  package var seconds: Int
  package init(reason: EndReason, by: UserID?, seconds: Int) {
    self.reason = reason
    self.by = by
    self.seconds = seconds
  }
}

/// The track as in the state, `participant` beside its members, and on removal perhaps a `cause`.
package struct TrackChange: Codable, Sendable, Hashable {
  package enum Cause: String, Codable, Sendable { case replaced }
  package var track: TrackID
  package var source: TrackSource
  package var kind: MediaKind
  package var muted: Bool
  package var participant: ParticipantNumber
  package var cause: Cause?
  package init(_ state: TrackState, cause: Cause? = nil) {
    track = state.track
    source = state.source
    kind = state.kind
    muted = state.muted
    participant = state.track.participant
    self.cause = cause
  }
}

package struct Speakers: Codable, Sendable, Hashable {
  package var participants: [ParticipantNumber]
  package init(participants: [ParticipantNumber]) { self.participants = participants }
}

package struct Rotate: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var mode: RotationMode
  package var leader: ParticipantNumber
  package var listHash: Base64Bytes
  /// Against the list before, for a device that has it.
  package var added: [ListEntry]?
  package var removed: [ListEntry]?
  /// The whole list, for a device that is new on it.
  package var list: [ListEntry]?
  /// For the leader: who needs an envelope.
  package var deliver: [ListEntry]?
  package init(
    epoch: UInt32, mode: RotationMode, leader: ParticipantNumber, listHash: Base64Bytes, added: [ListEntry]? = nil,
    removed: [ListEntry]? = nil, list: [ListEntry]? = nil, deliver: [ListEntry]? = nil
  ) {
    self.epoch = epoch
    self.mode = mode
    self.leader = leader
    self.listHash = listHash
    self.added = added
    self.removed = removed
    self.list = list
    self.deliver = deliver
  }
}

package struct SwitchKeys: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package init(epoch: UInt32) { self.epoch = epoch }
}

package struct KeyRequest: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var to: ListEntry
  package init(epoch: UInt32, to: ListEntry) {
    self.epoch = epoch
    self.to = to
  }
}

package struct DevicesChanged: Codable, Sendable, Hashable {
  package var user: UserID
  package init(user: UserID) { self.user = user }
}

package struct Slots: Codable, Sendable, Hashable {
  package var rev: UInt64
  package var receive: [Slot]
  package var unsupported: [TrackID]
  package init(rev: UInt64, receive: [Slot], unsupported: [TrackID]) {
    self.rev = rev
    self.receive = receive
    self.unsupported = unsupported
  }
}

package struct Need: Codable, Sendable, Hashable {
  package var audio: Int
  package var video: Int
  package init(audio: Int, video: Int) {
    self.audio = audio
    self.video = video
  }
}

/// How well a receiver is served: `level` 0 (bad) to 4, `bitrate` in bit/s.
package struct Quality: Codable, Sendable, Hashable {
  package var participant: ParticipantNumber
  package var level: Int
  package var bitrate: Int
  package init(participant: ParticipantNumber, level: Int, bitrate: Int) {
    self.participant = participant
    self.level = level
    self.bitrate = bitrate
  }
}

/// An opaque message of a participant to others.
package struct CallMessage: Codable, Sendable, Hashable {
  package var from: ParticipantNumber
  package var body: Base64Bytes
  package init(from: ParticipantNumber, body: Base64Bytes) {
    self.from = from
    self.body = body
  }
}

package struct PresenceState: Codable, Sendable, Hashable {
  package enum State: String, Codable, Sendable {
    case offline, unavailable, available, ringing
    case inCall = "in-call"
  }
  package var user: UserID
  package var state: State
  package init(user: UserID, state: State) {
    self.user = user
    self.state = state
  }
}

/// For the app's back end: these devices of a callee are not connected and must be woken.
package struct PushRing: Codable, Sendable, Hashable {
  package var user: UserID
  package var devices: [DeviceID]
  package var from: UserID
  package var media: CallMedia
  package var expiresAt: Timestamp
  package init(user: UserID, devices: [DeviceID], from: UserID, media: CallMedia, expiresAt: Timestamp) {
    self.user = user
    self.devices = devices
    self.from = from
    self.media = media
    self.expiresAt = expiresAt
  }
}

/// The ring of which `push.ring` told is answered or over.
package struct PushCancel: Codable, Sendable, Hashable {
  package var user: UserID
  package init(user: UserID) { self.user = user }
}

/// An abuse report; `by` made it.
package struct Report: Codable, Sendable, Hashable {
  package var by: UserID
  package var user: UserID
  package var participant: ParticipantNumber?
  package var text: String
  package init(by: UserID, user: UserID, participant: ParticipantNumber?, text: String) {
    self.by = by
    self.user = user
    self.participant = participant
    self.text = text
  }
}

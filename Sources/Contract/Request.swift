package import MediaModel

/// A client's request: a SEND to `/app/…` (protocol sections 4 to 8). Each family is answered by one part of the server, and each switch there is exhaustive.
package enum Request: Sendable {
  case people(PeopleRequest)
  case history(HistoryRequest)
  case recordings(RecordingsRequest)
  case calls(CallsRequest)

  package static func start(_ body: StartCall) -> Self { .calls(.start(body)) }
  package static var listCalls: Self { .calls(.list) }
  package static func call(_ call: CallID, _ request: MemberRequest) -> Self { .calls(.call(call, request)) }
  package static func inCall(_ call: CallID, _ request: ParticipantRequest) -> Self { .calls(.inCall(call, request)) }
}

/// About users and devices.
package enum PeopleRequest: Sendable {
  case registerDevice(RegisterDevice)
  case listDevices(ListDevices)
  case subscribePush(SubscribePush)
  case removeDevice(RemoveDevice)
  case vouchForDevice(DeviceStatement)
  case revokeDevice(DeviceStatement)
  case pairDevice(PairDevice)
  case setPresence(SetPresence)
  case watchPresence(WatchPresence)
  case makeLink(MakeLastingLink)
  case listLinks
  case deleteLink(DeleteLastingLink)
  case openLink(OpenLastingLink)
}

/// About past calls.
package enum HistoryRequest: Sendable {
  case list(ListHistory)
  case delete(DeleteHistory)
  case totals(HistoryTotals)
}

/// About running calls.
package enum CallsRequest: Codable, Sendable {
  case start(StartCall)
  case list
  case call(CallID, MemberRequest)
  case inCall(CallID, ParticipantRequest)
}

/// About one call, by its members and by those who want to be members.
package enum MemberRequest: Codable, Sendable {
  case accept(Join)
  case decline(Decline)
  case invite(Invite)
  case cancel(Cancel)
  case join(Join)
  case rejoin(Join)
  case transfer(Join)
  case leave
  case end
  case link(MakeLink)
  case knock(Knock)
  case admitGuest(AdmitGuest)
  case refuseGuest(RefuseGuest)
  case removeGuest(RemoveGuest)
  case hold(Hold)
  case state
  case report(ReportAbuse)
}

/// Inside one call, by its participants.
package enum ParticipantRequest: Codable, Sendable {
  case media(MediaRequest)
  case track(TrackID, ChangeTrack)
  case receive(Receive)
  case message(SendMessage)
  case stats(QualityNumbers)
  case keys(HandOutKeys)
  case requestKey(RequestKey)
  case listKeys(ListKeys)
  case waitForKey(WaitForKey)
  case confirmKey(ConfirmKey)
  case listConfirmations(ListConfirmations)
  case startRecording(StartCallRecording)
  case consentToRecording(ConsentToRecording)
  case exportTrackKeys(ExportTrackKeys)
  case stopRecording(StopCallRecording)
}

package struct RegisterDevice: Codable, Sendable {
  package var name: String?
  package var keys: [DeviceKey]
  package init(name: String?, keys: [DeviceKey]) {
    self.name = name
    self.keys = keys
  }
}

package struct ListDevices: Codable, Sendable {
  package var users: [UserID]
  package init(users: [UserID]) { self.users = users }
}

package struct RemoveDevice: Codable, Sendable {
  /// The sending device's signature that the removed device must no longer be trusted.
  package struct Revoke: Codable, Sendable {
    package var fingerprint: Base64Bytes
    package var at: Timestamp
    package var sigAlg: String
    package var signature: Base64Bytes
    package init(fingerprint: Base64Bytes, at: Timestamp, sigAlg: String, signature: Base64Bytes) {
      self.fingerprint = fingerprint
      self.at = at
      self.sigAlg = sigAlg
      self.signature = signature
    }
  }
  package var device: DeviceID
  package var revoke: Revoke?
  package init(device: DeviceID, revoke: Revoke? = nil) {
    self.device = device
    self.revoke = revoke
  }
}

package struct StartCall: Codable, Sendable {
  /// The list of a ring contains the initiator's device and these, and each ring brings the whole list.
  package static let maximumEnvelopes = 255

  /// Made by the client, a random UUID; a service may leave it to the server.
  package var id: CallID?
  package var callees: [UserID]
  package var media: CallMedia
  package var policy: Policy?
  package var metadata: Base64Bytes?
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  package var envelopes: [Envelope]?
  /// A word for each callee, and the sender's root.
  package var admissions: [Admission]?
  /// Only for a service: the user on whose behalf it starts the call (protocol section 11).
  package var `as`: UserID?
  package init(
    id: CallID? = nil, callees: [UserID], media: CallMedia, policy: Policy? = nil, metadata: Base64Bytes? = nil,
    joinId: Base64Bytes? = nil, joinKey: JoinKey? = nil, envelopes: [Envelope]? = nil, admissions: [Admission]? = nil,
    as: UserID? = nil
  ) {
    self.id = id
    self.callees = callees
    self.media = media
    self.policy = policy
    self.metadata = metadata
    self.joinId = joinId
    self.joinKey = joinKey
    self.envelopes = envelopes
    self.admissions = admissions
    self.as = `as`
  }
}

/// The body of `accept`, `join`, `rejoin` and `transfer`.
package struct Join: Codable, Sendable {
  /// Only for `join`: lets in a user who is not a member.
  package var link: String?
  /// With `link`, and for `rejoin` of a guest whose keys are new: the word for the user itself.
  package var admission: Admission?
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  /// Only for `rejoin`: false from a device that already has the call's state.
  package var state: Bool?
  package init(
    link: String? = nil, admission: Admission? = nil, joinId: Base64Bytes? = nil, joinKey: JoinKey? = nil,
    state: Bool? = nil
  ) {
    self.link = link
    self.admission = admission
    self.joinId = joinId
    self.joinKey = joinKey
    self.state = state
  }
}

package struct Decline: Codable, Sendable {
  package var reason: String?
  package init(reason: String? = nil) { self.reason = reason }
}

package struct Invite: Codable, Sendable {
  package var callees: [UserID]
  package var metadata: Base64Bytes?
  /// A word for each callee.
  package var admissions: [Admission]?
  package init(callees: [UserID], metadata: Base64Bytes? = nil, admissions: [Admission]? = nil) {
    self.callees = callees
    self.metadata = metadata
    self.admissions = admissions
  }
}

package struct Cancel: Codable, Sendable {
  package var callees: [UserID]?
  package init(callees: [UserID]? = nil) { self.callees = callees }
}

package struct MakeLink: Codable, Sendable {
  /// Seconds, 60 to 86,400; 3,600 if absent.
  package var expiresIn: Int?
  /// The word that makes the link.
  package var admission: Admission?
  package var revoke: Bool?
  /// The lasting link that this call is for. The call's link is valid as long, whatever `expiresIn` says.
  package var lasting: LinkID?
  package init(
    expiresIn: Int? = nil, admission: Admission? = nil, revoke: Bool? = nil, lasting: LinkID? = nil
  ) {
    self.expiresIn = expiresIn
    self.admission = admission
    self.revoke = revoke
    self.lasting = lasting
  }
}

/// A guest asks to be admitted, and waits.
package struct Knock: Codable, Sendable {
  package var link: String
  /// The word by which the guest comes by the link.
  package var admission: Admission
  package init(link: String, admission: Admission) {
    self.link = link
    self.admission = admission
  }
}

package struct AdmitGuest: Codable, Sendable {
  /// The word with which the guest knocked, with `admittedBy`.
  package var admission: Admission
  package init(admission: Admission) { self.admission = admission }
}

package struct RefuseGuest: Codable, Sendable {
  package var guest: UserID
  package init(guest: UserID) { self.guest = guest }
}

package struct RemoveGuest: Codable, Sendable {
  package var guest: UserID
  package init(guest: UserID) { self.guest = guest }
}

package struct Hold: Codable, Sendable {
  package var held: Bool
  package init(held: Bool) { self.held = held }
}

package struct MediaRequest: Codable, Sendable {
  package struct Track: Codable, Sendable {
    package var mid: String
    package var source: TrackSource
    package var replace: Bool?
    package init(mid: String, source: TrackSource, replace: Bool? = nil) {
      self.mid = mid
      self.source = source
      self.replace = replace
    }
  }
  package var sdp: String
  package var tracks: [Track]
  package init(sdp: String, tracks: [Track]) {
    self.sdp = sdp
    self.tracks = tracks
  }
}

package struct ChangeTrack: Codable, Sendable {
  package var muted: Bool
  package init(muted: Bool) { self.muted = muted }
}

/// A participant's preferences for what it receives. Absent members keep their values.
package struct Receive: Codable, Sendable {
  package struct Video: Codable, Sendable {
    package var track: TrackID
    /// In pixels.
    package var maxHeight: Int?
    /// Higher ones first.
    package var priority: Int?
    package var paused: Bool?
    package init(track: TrackID, maxHeight: Int? = nil, priority: Int? = nil, paused: Bool? = nil) {
      self.track = track
      self.maxHeight = maxHeight
      self.priority = priority
      self.paused = paused
    }
  }
  package var lastN: Int?
  package var videos: [Video]?
  /// All others if absent.
  package var muted: [ParticipantNumber]?
  package init(lastN: Int? = nil, videos: [Video]? = nil, muted: [ParticipantNumber]? = nil) {
    self.lastN = lastN
    self.videos = videos
    self.muted = muted
  }
}

package struct SendMessage: Codable, Sendable {
  /// All others without.
  package var to: [ParticipantNumber]?
  package var body: Base64Bytes
  package init(to: [ParticipantNumber]? = nil, body: Base64Bytes) {
    self.to = to
    self.body = body
  }
}

/// A client's measurements. The server adds them up without identities, and shows an operator each participant's latest ones. Times in milliseconds, loss as a
/// fraction of 1.
package struct QualityNumbers: Codable, Sendable, Hashable {
  package var rtt: Double?
  package var loss: Double?
  package var jitter: Double?
  package var freezes: Double?
  package var firstFrameMs: Double?
  package init(
    rtt: Double? = nil, loss: Double? = nil, jitter: Double? = nil, freezes: Double? = nil, firstFrameMs: Double? = nil
  ) {
    self.rtt = rtt
    self.loss = loss
    self.jitter = jitter
    self.freezes = freezes
    self.firstFrameMs = firstFrameMs
  }
}

/// Names a participant or a user.
package struct ReportAbuse: Codable, Sendable {
  package var participant: ParticipantNumber?
  package var user: UserID?
  package var text: String
  package init(participant: ParticipantNumber? = nil, user: UserID? = nil, text: String) {
    self.participant = participant
    self.user = user
    self.text = text
  }
}

package struct HandOutKeys: Codable, Sendable {
  package var epoch: UInt32
  package var envelopes: [Envelope]
  package init(epoch: UInt32, envelopes: [Envelope]) {
    self.epoch = epoch
    self.envelopes = envelopes
  }
}

package struct RequestKey: Codable, Sendable {
  package var epoch: UInt32?
  package init(epoch: UInt32? = nil) { self.epoch = epoch }
}

package struct ListKeys: Codable, Sendable {
  /// The newest epoch whose list the device has checked.
  package var since: UInt32?
  package init(since: UInt32? = nil) { self.since = since }
}

package struct WaitForKey: Codable, Sendable {
  package var epoch: UInt32
  package var reason: WaitReason
  package init(epoch: UInt32, reason: WaitReason) {
    self.epoch = epoch
    self.reason = reason
  }
}

package struct ConfirmKey: Codable, Sendable {
  package var epoch: UInt32
  /// 16 bytes.
  package var tag: Base64Bytes
  /// A refreshed join key: that of the next generation.
  package var joinKey: JoinKey?
  package init(epoch: UInt32, tag: Base64Bytes, joinKey: JoinKey? = nil) {
    self.epoch = epoch
    self.tag = tag
    self.joinKey = joinKey
  }
}

package struct ListConfirmations: Codable, Sendable {
  package var epoch: UInt32
  package var bucket: Int
  package init(epoch: UInt32, bucket: Int) {
    self.epoch = epoch
    self.bucket = bucket
  }
}

package struct SetPresence: Codable, Sendable {
  package enum State: String, Codable, Sendable, CaseIterable { case available, unavailable }
  package var state: State
  package var role: String?
  package init(state: State, role: String? = nil) {
    self.state = state
    self.role = role
  }
}

/// Names users or a role.
package struct WatchPresence: Codable, Sendable {
  package var users: [UserID]?
  package var role: String?
  package init(users: [UserID]? = nil, role: String? = nil) {
    self.users = users
    self.role = role
  }
}

package struct ListHistory: Codable, Sendable {
  /// Only calls that started earlier than this.
  package var before: Timestamp?
  /// 1 to 200.
  package var limit: Int?
  package init(before: Timestamp? = nil, limit: Int? = nil) {
    self.before = before
    self.limit = limit
  }
}

/// Names calls, or all.
package struct DeleteHistory: Codable, Sendable {
  package var calls: [CallID]?
  package var all: Bool?
  package init(calls: [CallID]? = nil, all: Bool? = nil) {
    self.calls = calls
    self.all = all
  }
}

package struct HistoryTotals: Codable, Sendable {
  package var with: UserID
  package init(with: UserID) { self.with = with }
}

/// A body without members: `{}` or an empty SEND.
package struct NoBody: Codable, Sendable { package init() {} }

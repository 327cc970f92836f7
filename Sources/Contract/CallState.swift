package import MediaModel

package enum CallMedia: String, Codable, Sendable, Hashable, CaseIterable { case audio, video }

/// `policy` of a call. Members that `start` omits get their defaults.
package struct Policy: Codable, Sendable, Hashable {
  package enum Invite: String, Codable, Sendable, CaseIterable { case members, initiator }
  package enum WhenBusy: String, Codable, Sendable, CaseIterable { case ring, reject }
  /// The people who may record the call.
  package enum Record: String, Codable, Sendable, CaseIterable { case members, initiator, nobody }

  package var invite: Invite?
  package var whenBusy: WhenBusy?
  /// 5 to 120.
  package var ringSeconds: Int?
  package var screens: Int?
  package var aloneSeconds: Int?
  package var awaySeconds: Int?
  package var connectSeconds: Int?
  package var maxHours: Int?
  package var rotateMinutes: Int?
  package var codecs: [String]?
  package var record: Record?

  package init() {}
}

package enum CallPhase: String, Codable, Sendable, CaseIterable { case ringing, active, ended }
package enum MemberPhase: String, Codable, Sendable, CaseIterable {
  case ringing, joined, left, declined, missed, cancelled, disconnected
}

/// A call's state, as in replies and in `call.state` (protocol section 4).
package struct CallState: Codable, Sendable, Hashable {
  package var id: CallID
  /// Rises with each change of the state. The server always sends it.
  package var rev: UInt64?
  package var state: CallPhase
  package var media: CallMedia
  package var initiator: UserID
  package var startedAt: Timestamp
  /// When somebody other than the initiator joined first; absent before that.
  package var answeredAt: Timestamp?
  package var epoch: UInt32
  package var policy: Policy
  package var members: [MemberState]
  package var metadata: Base64Bytes?
  package var recording: CallRecordingState?

  package init(
    id: CallID, rev: UInt64? = nil, state: CallPhase, media: CallMedia, initiator: UserID, startedAt: Timestamp,
    answeredAt: Timestamp? = nil, epoch: UInt32, policy: Policy, members: [MemberState], metadata: Base64Bytes?,
    recording: CallRecordingState? = nil
  ) {
    self.id = id
    self.rev = rev
    self.state = state
    self.media = media
    self.initiator = initiator
    self.startedAt = startedAt
    self.answeredAt = answeredAt
    self.epoch = epoch
    self.policy = policy
    self.members = members
    self.metadata = metadata
    self.recording = recording
  }
}

package struct MemberState: Codable, Sendable, Hashable {
  package var user: UserID
  package var name: String?
  package var state: MemberPhase
  package var participants: [ParticipantState]
  /// `true` for participants who joined by a link; absent for others.
  package var link: Bool?

  package init(
    user: UserID, name: String?, state: MemberPhase, participants: [ParticipantState], link: Bool? = nil
  ) {
    self.user = user
    self.name = name
    self.state = state
    self.participants = participants
    self.link = link
  }
}

package struct ParticipantState: Codable, Sendable, Hashable {
  package var participant: ParticipantNumber
  package var device: DeviceID
  package var joinId: Base64Bytes
  /// Media flows.
  package var connected: Bool
  package var held: Bool
  package var tracks: [TrackState]

  package init(
    participant: ParticipantNumber, device: DeviceID, joinId: Base64Bytes, connected: Bool, held: Bool,
    tracks: [TrackState]
  ) {
    self.participant = participant
    self.device = device
    self.joinId = joinId
    self.connected = connected
    self.held = held
    self.tracks = tracks
  }
}

package struct TrackState: Codable, Sendable, Hashable {
  package var track: TrackID
  package var source: TrackSource
  package var kind: MediaKind
  package var muted: Bool

  package init(track: TrackID, source: TrackSource, muted: Bool) {
    self.track = track
    self.source = source
    self.kind = source.kind
    self.muted = muted
  }
}

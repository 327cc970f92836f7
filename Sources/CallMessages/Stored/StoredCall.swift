package import Contract
package import MediaModel

/// The part of a call that never changes.
package struct StoredCall: Hashable, Sendable, Codable {
  package var id: CallID
  package var media: CallMedia
  package var initiator: UserID
  package var startedAt: Timestamp
  package var policy: Policy
  package var metadata: Base64Bytes?
  /// The device that sent `start`, and its joinId (rule 14).
  package var starter: Device
  package var joinId: Base64Bytes
  /// The reply to `start`; without `ice`, whose credentials are temporary.
  package var reply: Joined?

  package init(
    id: CallID, media: CallMedia, initiator: UserID, startedAt: Timestamp, policy: Policy,
    metadata: Base64Bytes? = nil, starter: Device, joinId: Base64Bytes, reply: Joined? = nil
  ) {
    self.id = id
    self.media = media
    self.initiator = initiator
    self.startedAt = startedAt
    self.policy = policy
    self.metadata = metadata
    self.starter = starter
    self.joinId = joinId
    self.reply = reply
  }
}

/// The changing fields of a call as a whole. They are few, because they are written at each join.
package struct StoredProgress: Hashable, Sendable, Codable {
  /// nil while it rings.
  package var activeSince: Timestamp?
  package var lastNumber: ParticipantNumber
  package var soleCallee: UserID?
  /// Somebody was not rung and has the call as missed; nil: nobody.
  package var hasSilenced: Bool?
  package var aloneSince: Timestamp?
  /// When the last of the departed participants was there.
  package var lastThere: Timestamp?
  /// The number that the log has counted.
  package var failures: Int?
  package var links: StoredLinks?
  package var rotateAt: Timestamp?
  /// The epoch last switched to.
  package var epoch: UInt32
  /// The newest epoch waits neither for its key nor for its switch, and nothing requires the next one.
  package var isSettled: Bool
  /// The device that handed out the newest epoch's key.
  package var distributor: Device?
  /// No announced revision is higher.
  package var revisionLimit: UInt64
  package var recording: StoredCallRecording?
  package var endedRecordings: [RecordingID]?

  package init(
    activeSince: Timestamp? = nil, lastNumber: ParticipantNumber, soleCallee: UserID? = nil, hasSilenced: Bool? = nil,
    aloneSince: Timestamp? = nil, lastThere: Timestamp? = nil, failures: Int? = nil, links: StoredLinks? = nil,
    rotateAt: Timestamp? = nil, epoch: UInt32, isSettled: Bool, distributor: Device? = nil, revisionLimit: UInt64,
    recording: StoredCallRecording? = nil, endedRecordings: [RecordingID]? = nil
  ) {
    self.activeSince = activeSince
    self.lastNumber = lastNumber
    self.soleCallee = soleCallee
    self.hasSilenced = hasSilenced
    self.aloneSince = aloneSince
    self.lastThere = lastThere
    self.failures = failures
    self.links = links
    self.rotateAt = rotateAt
    self.epoch = epoch
    self.isSettled = isSettled
    self.distributor = distributor
    self.revisionLimit = revisionLimit
    self.recording = recording
    self.endedRecordings = endedRecordings
  }
}

/// A recording that runs. The consents are not stored: after a restart nothing is recorded of anybody who does not agree again.
package struct StoredCallRecording: Hashable, Sendable, Codable {
  package var statement: RecordingStatement
  package var since: Timestamp

  package init(statement: RecordingStatement, since: Timestamp) {
    self.statement = statement
    self.since = since
  }
}

/// The data against which a call's links are checked.
package struct StoredLinks: Hashable, Sendable, Codable {
  package var key: Base64Bytes
  package var validUntil: Timestamp

  package init(key: Base64Bytes, validUntil: Timestamp) {
    self.key = key
    self.validUntil = validUntil
  }
}

/// The newest epoch as announced. The entries of participants are stored by themselves (`StoreChange.entry`): most of them are those of the epoch before, and
/// a list of 1,000 is half a megabyte.
package struct StoredEpoch: Hashable, Sendable, Codable {
  package var number: UInt32
  package var mode: RotationMode
  /// The `listHash` of the epoch before.
  package var previous: Base64Bytes
  /// The entries of devices that ring, which have no number.
  package var ringing: [ListEntry]

  package init(number: UInt32, mode: RotationMode, previous: Base64Bytes, ringing: [ListEntry]) {
    self.number = number
    self.mode = mode
    self.previous = previous
    self.ringing = ringing
  }
}

package struct StoredMember: Hashable, Sendable, Codable {
  package struct Ringing: Hashable, Sendable, Codable {
    package var by: UserID
    package var expiresAt: Timestamp
    package var waiting: Bool
    package var isPushed: Bool
    /// nil: the call's metadata.
    package var metadata: Base64Bytes?

    package init(by: UserID, expiresAt: Timestamp, waiting: Bool, isPushed: Bool, metadata: Base64Bytes? = nil) {
      self.by = by
      self.expiresAt = expiresAt
      self.waiting = waiting
      self.isPushed = isPushed
      self.metadata = metadata
    }
  }

  package var user: UserID
  package var name: String?
  /// The index among all members, in the order in which they came.
  package var place: Int
  package var phase: MemberPhase
  package var hasBeenIn: Bool
  package var cameByLink: Bool
  package var ringing: Ringing?
  /// Two during a transfer: the old one comes first.
  package var participants: [StoredParticipant]
  /// The start of `awaySeconds` for a disconnected member.
  package var disconnectedAt: Timestamp?

  package init(
    user: UserID, name: String? = nil, place: Int, phase: MemberPhase, hasBeenIn: Bool, cameByLink: Bool,
    ringing: Ringing? = nil, participants: [StoredParticipant], disconnectedAt: Timestamp? = nil
  ) {
    self.user = user
    self.name = name
    self.place = place
    self.phase = phase
    self.hasBeenIn = hasBeenIn
    self.cameByLink = cameByLink
    self.ringing = ringing
    self.participants = participants
    self.disconnectedAt = disconnectedAt
  }
}

package struct StoredParticipant: Hashable, Sendable, Codable {
  package struct Track: Hashable, Sendable, Codable {
    package var index: UInt8
    package var mid: String
    package var source: TrackSource
    package var muted: Bool
    package var liveSince: Timestamp?

    package init(index: UInt8, mid: String, source: TrackSource, muted: Bool, liveSince: Timestamp? = nil) {
      self.index = index
      self.mid = mid
      self.source = source
      self.muted = muted
      self.liveSince = liveSince
    }
  }

  package var number: ParticipantNumber
  package var device: DeviceID
  package var joinId: Base64Bytes
  package var joinedAt: Timestamp
  package var isHeld: Bool
  package var tracks: [Track]
  package var joinKey: JoinKey?
  /// The newest generation of the join key.
  package var refresh: JoinKey?
  /// The device's keys when it joined (rule 15).
  package var keys: DeviceEntry?

  package init(
    number: ParticipantNumber, device: DeviceID, joinId: Base64Bytes, joinedAt: Timestamp, isHeld: Bool,
    tracks: [Track], joinKey: JoinKey? = nil, refresh: JoinKey? = nil, keys: DeviceEntry? = nil
  ) {
    self.number = number
    self.device = device
    self.joinId = joinId
    self.joinedAt = joinedAt
    self.isHeld = isHeld
    self.tracks = tracks
    self.joinKey = joinKey
    self.refresh = refresh
    self.keys = keys
  }
}

extension StoredCall: CustomStringConvertible { package var description: String { "call \(id)" } }
extension StoredProgress: CustomStringConvertible { package var description: String { "progress" } }
extension StoredMember: CustomStringConvertible { package var description: String { "member" } }
extension StoredParticipant: CustomStringConvertible { package var description: String { "participant" } }

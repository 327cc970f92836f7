package import MediaModel

/// TURN servers for a client; credentials are time-limited.
package struct ICE: Codable, Sendable, Hashable {
  package var servers: [ICEServer]
  package init(servers: [ICEServer] = []) { self.servers = servers }
}

package struct ICEServer: Codable, Sendable, Hashable {
  package var urls: [String]
  package var username: String?
  package var credential: String?
  package init(urls: [String], username: String? = nil, credential: String? = nil) {
    self.urls = urls
    self.username = username
    self.credential = credential
  }
}

package enum RingResult: String, Codable, Sendable, CaseIterable {
  case ringing, offline, unavailable, busy
  case noKeys = "no-keys"
  case alreadyJoined = "already-joined"
  case alreadyRinging = "already-ringing"
}

/// Reply of `start` (with `results`), `accept`, `join`, `rejoin` and `transfer`.
package struct Joined: Codable, Sendable, Hashable {
  package var call: CallState
  package var participant: ParticipantNumber
  package var ice: ICE
  package var results: [UserID: RingResult]?
  package init(call: CallState, participant: ParticipantNumber, ice: ICE, results: [UserID: RingResult]? = nil) {
    self.call = call
    self.participant = participant
    self.ice = ice
    self.results = results
  }
}

/// Reply of a `rejoin` whose device already has the call's state.
package struct Rejoined: Codable, Sendable, Hashable {
  package var participant: ParticipantNumber
  package var ice: ICE
  package init(_ joined: Joined) {
    participant = joined.participant
    ice = joined.ice
  }
}

/// Reply of a service's `start`: the service is not a participant.
package struct StartedCall: Codable, Sendable, Hashable {
  package var call: CallState
  package var results: [UserID: RingResult]
  package init(_ joined: Joined) {
    call = joined.call
    results = joined.results ?? [:]
  }
}

package struct InviteResults: Codable, Sendable, Hashable {
  package var results: [UserID: RingResult]
  package init(results: [UserID: RingResult]) { self.results = results }
}

package struct Registered: Codable, Sendable, Hashable {
  package var fingerprint: Base64Bytes
  /// The server's key for Web Push, an uncompressed P-256 point; absent if it sends no pushes.
  package var pushKey: Base64Bytes?
  package init(fingerprint: Base64Bytes, pushKey: Base64Bytes? = nil) {
    self.fingerprint = fingerprint
    self.pushKey = pushKey
  }
}

package struct Devices: Codable, Sendable, Hashable {
  /// The day on which a device of the asking user was last connected.
  package struct Seen: Codable, Sendable, Hashable {
    package var device: DeviceID
    /// The beginning of the day, in UTC.
    package var day: Timestamp
    package init(device: DeviceID, day: Timestamp) {
      self.device = device
      self.day = day
    }
  }
  package var devices: [DeviceEntry]
  /// Revocations of the listed users' devices, including removed devices.
  package var revokes: [Revoke]
  /// Those of the asking user's own devices; nil if none of them is listed.
  package var seen: [Seen]?
  package init(devices: [DeviceEntry], revokes: [Revoke] = [], seen: [Seen]? = nil) {
    self.devices = devices
    self.revokes = revokes
    self.seen = seen
  }
}

package struct CallList: Codable, Sendable, Hashable {
  package var calls: [CallState]
  package init(calls: [CallState]) { self.calls = calls }
}

package struct MediaAnswer: Codable, Sendable, Hashable {
  package struct Track: Codable, Sendable, Hashable {
    package var mid: String
    package var track: TrackID
    package init(mid: String, track: TrackID) {
      self.mid = mid
      self.track = track
    }
  }
  package var sdp: String
  package var tracks: [Track]
  package var receive: [Slot]
  package var rev: UInt64
  package var unsupported: [TrackID]
  package init(sdp: String, tracks: [Track], receive: [Slot], rev: UInt64, unsupported: [TrackID]) {
    self.sdp = sdp
    self.tracks = tracks
    self.receive = receive
    self.rev = rev
    self.unsupported = unsupported
  }
}

/// The contents of one slot, as in `receive` and `media.slots`.
package struct Slot: Codable, Sendable, Hashable {
  package var mid: String
  package var track: TrackID
  package var participant: ParticipantNumber
  package var source: TrackSource
  package var picture: LimitedPicture?
  package init(_ assignment: SlotAssignment) {
    mid = assignment.mid
    track = assignment.track
    participant = assignment.track.participant
    source = assignment.source
    picture = assignment.picture
  }
}

/// A signed token that lets anyone who holds it `join` the call.
package struct CallLink: Codable, Sendable, Hashable {
  package var link: String
  package var expiresAt: Timestamp
  package init(link: String, expiresAt: Timestamp) {
    self.link = link
    self.expiresAt = expiresAt
  }
}

extension CallLink: CustomStringConvertible { package var description: String { "link" } }

/// Reply of `knock`: the guest waits.
package struct Knocking: Codable, Sendable, Hashable {
  /// It waits no longer than until then.
  package var expiresAt: Timestamp
  package init(expiresAt: Timestamp) { self.expiresAt = expiresAt }
}

/// Reply of `presence/watch`: the current state of the users. The event `presence` reports each change.
package struct PresenceList: Codable, Sendable, Hashable {
  package var users: [PresenceState]
  package init(users: [PresenceState]) { self.users = users }
}

/// One call in a user's history (protocol section 8).
package struct HistoryEntry: Codable, Sendable, Hashable {
  package enum Direction: String, Codable, Sendable, CaseIterable { case incoming, outgoing }
  package enum Outcome: String, Codable, Sendable, CaseIterable { case answered, missed, declined, cancelled }
  package struct Member: Codable, Sendable, Hashable {
    package var user: UserID
    package var name: String?
    package init(user: UserID, name: String?) {
      self.user = user
      self.name = name
    }
  }
  package var id: CallID
  package var direction: Direction
  package var outcome: Outcome
  package var media: CallMedia
  package var members: [Member]
  package var startedAt: Timestamp
  /// The time that this user spent in the call.
  package var seconds: Int
  package var rejoinable: Bool
  package init(
    id: CallID, direction: Direction, outcome: Outcome, media: CallMedia, members: [Member], startedAt: Timestamp,
    seconds: Int, rejoinable: Bool
  ) {
    self.id = id
    self.direction = direction
    self.outcome = outcome
    self.media = media
    self.members = members
    self.startedAt = startedAt
    self.seconds = seconds
    self.rejoinable = rejoinable
  }
}

/// Newest first.
package struct HistoryList: Codable, Sendable, Hashable {
  package var calls: [HistoryEntry]
  package init(calls: [HistoryEntry]) { self.calls = calls }
}

/// Reply of `history/totals`.
package struct Totals: Codable, Sendable, Hashable {
  package var calls: Int
  package var seconds: Int
  package init(calls: Int, seconds: Int) {
    self.calls = calls
    self.seconds = seconds
  }
}

package struct KeysDelivered: Codable, Sendable, Hashable {
  package var delivered: [Device]
  package var missing: [Device]
  package init(delivered: [Device], missing: [Device]) {
    self.delivered = delivered
    self.missing = missing
  }
}

/// Reply of `keys/list`: the newest epoch, switched to or not.
package struct KeyList: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var mode: RotationMode
  /// The `listHash` of the epoch announced before.
  package var previous: Base64Bytes
  package var listHash: Base64Bytes
  package var list: [ListEntry]
  /// The epochs after the request's `since`, including the newest, in order.
  package var links: [EpochLink]
  /// The newest epoch's confirmations so far.
  package var confirmed: [ConfirmationBucket]
  /// The words that the list needs.
  package var admissions: [Admission]?
  /// The devices that signed them and are not on the list.
  package var signers: [Signer]?
  package init(
    epoch: UInt32, mode: RotationMode, previous: Base64Bytes, listHash: Base64Bytes, list: [ListEntry],
    links: [EpochLink], confirmed: [ConfirmationBucket], admissions: [Admission]? = nil, signers: [Signer]? = nil
  ) {
    self.epoch = epoch
    self.mode = mode
    self.previous = previous
    self.listHash = listHash
    self.list = list
    self.links = links
    self.confirmed = confirmed
    self.admissions = admissions
    self.signers = signers
  }
}

/// An announced epoch's place in the chain of lists: `roster` is its list's hash without the chain.
package struct EpochLink: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var roster: Base64Bytes
  package init(epoch: UInt32, roster: Base64Bytes) {
    self.epoch = epoch
    self.roster = roster
  }
}

/// Reply of `keys/confirmations`: the individual tags of one bucket.
package struct ConfirmationTags: Codable, Sendable, Hashable {
  package struct Tag: Codable, Sendable, Hashable {
    package var participant: ParticipantNumber
    package var tag: Base64Bytes
    package init(participant: ParticipantNumber, tag: Base64Bytes) {
      self.participant = participant
      self.tag = tag
    }
  }
  package var tags: [Tag]
  package init(tags: [Tag]) { self.tags = tags }
}

/// Why a request failed: the code of protocol section 9, and text that tells the reader what to do next.
package struct RequestError: Error, Codable, Sendable, Hashable {
  package enum Code: String, Codable, Sendable, CaseIterable {
    case requestInvalid = "request.invalid"
    case requestUnknown = "request.unknown"
    case requestTooLarge = "request.too-large"
    case authForbidden = "auth.forbidden"
    case rateLimited = "rate.limited"
    case serverBusy = "server.busy"
    case serverDraining = "server.draining"
    case callNotFound = "call.not-found"
    case callEnded = "call.ended"
    case callExists = "call.exists"
    case callNotRinging = "call.not-ringing"
    case callAnsweredElsewhere = "call.answered-elsewhere"
    case callNotJoined = "call.not-joined"
    case callNotInitiator = "call.not-initiator"
    case callFull = "call.full"
    case callBusy = "call.busy"
    case callCrossed = "call.crossed"
    case callInviteNotAllowed = "call.invite-not-allowed"
    case callLinkInvalid = "call.link-invalid"
    case callNotAdmitted = "call.not-admitted"
    case userNotFound = "user.not-found"
    case deviceNotFound = "device.not-found"
    case keysEpochStale = "keys.epoch-stale"
    case keysNotAllowed = "keys.not-allowed"
    case keysTooLarge = "keys.too-large"
    case mediaSDPInvalid = "media.sdp-invalid"
    case mediaUnsupported = "media.unsupported"
    case mediaTooManyTracks = "media.too-many-tracks"
    case trackNotFound = "track.not-found"
    case trackNotOwn = "track.not-own"
    case screenBusy = "screen.busy"
    case roleNotAllowed = "role.not-allowed"
    case recordingNotFound = "recording.not-found"
    case recordingNotAllowed = "recording.not-allowed"
    case recordingEnded = "recording.ended"
    case recordingIncomplete = "recording.incomplete"
    case recordingFull = "recording.full"
    case recordingUnavailable = "recording.unavailable"
    case recordingBusy = "recording.busy"
    case `internal` = "internal"
  }
  package var code: Code
  package var message: String
  package var field: String?
  package var retryAfterMs: Int?
  /// The call that a refused `start` crossed.
  package var call: CallID?
  /// The number of the segment that a recording lacks.
  package var next: UInt32?

  package init(
    _ code: Code, _ message: String, field: String? = nil, retryAfterMs: Int? = nil, call: CallID? = nil,
    next: UInt32? = nil
  ) {
    self.next = next
    self.code = code
    self.message = message
    self.field = field
    self.retryAfterMs = retryAfterMs
    self.call = call
  }
}

/// The body of a reply with `status: error`.
package struct ErrorReply: Codable, Sendable, Hashable {
  package var error: RequestError
  package init(error: RequestError) { self.error = error }
}

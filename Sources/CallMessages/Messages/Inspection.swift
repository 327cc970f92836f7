package import Contract
package import MediaModel

// The operator's view of calls and people: `conclave calls`, `call` and `users`. No names, metadata or keys.

/// Whether a participant's device has the key of the newest epoch, as far as the server knows.
package enum KeyState: String, Codable, Sendable {
  case present
  /// The device registered no keys.
  case none
  /// Its envelope was sent but is not acknowledged.
  case unopened
  /// Its user does not trust the sender of its envelope.
  case untrusted
  /// No member made an envelope for it, or it could not open the one that it got.
  case missing
}

package struct CallSummary: Codable, Sendable {
  package var call: CallID
  package var state: CallPhase
  package var media: CallMedia
  package var startedAt: Timestamp
  package var epoch: UInt32
  package var members: Int
  package var ringing: Int
  package var joined: Int
  /// The joined participants whose media flows.
  package var connected: Int

  package init(
    call: CallID, state: CallPhase, media: CallMedia, startedAt: Timestamp, epoch: UInt32, members: Int, ringing: Int,
    joined: Int, connected: Int
  ) {
    self.call = call
    self.state = state
    self.media = media
    self.startedAt = startedAt
    self.epoch = epoch
    self.members = members
    self.ringing = ringing
    self.joined = joined
    self.connected = connected
  }
}

/// The log's knowledge about a call that has been running since before the server's start.
package struct CallTally: Sendable {
  package var call: CallID
  package var members: [MemberState]
  /// The number of participants that have ever joined.
  package var participants: Int
  package var failures: Int

  package init(call: CallID, members: [MemberState], participants: Int, failures: Int) {
    self.call = call
    self.members = members
    self.participants = participants
    self.failures = failures
  }
}

package struct CallInspection: Codable, Sendable {
  package enum MediaState: String, Codable, Sendable { case never, up, gone }

  package struct Participant: Codable, Sendable {
    package var participant: ParticipantNumber
    package var device: DeviceID
    package var joinedAt: Timestamp
    /// Its STOMP connection is up.
    package var signaling: Bool
    package var media: MediaState
    /// Since when. A path that is gone was last heard at that time. nil for a path that never existed.
    package var mediaSince: Timestamp?
    package var quality: ParticipantQuality
    package var key: KeyState
    package var held: Bool
    package var tracks: [TrackState]

    package init(
      participant: ParticipantNumber, device: DeviceID, joinedAt: Timestamp, signaling: Bool, media: MediaState,
      mediaSince: Timestamp? = nil, quality: ParticipantQuality, key: KeyState, held: Bool, tracks: [TrackState]
    ) {
      self.participant = participant
      self.device = device
      self.joinedAt = joinedAt
      self.signaling = signaling
      self.media = media
      self.mediaSince = mediaSince
      self.quality = quality
      self.key = key
      self.held = held
      self.tracks = tracks
    }
  }

  package struct Member: Codable, Sendable {
    package var user: UserID
    package var state: MemberPhase
    package var link: Bool?
    package var participants: [Participant]

    package init(user: UserID, state: MemberPhase, link: Bool? = nil, participants: [Participant]) {
      self.user = user
      self.state = state
      self.link = link
      self.participants = participants
    }
  }

  /// nil for a call that has ended.
  package var summary: CallSummary?
  package var members: [Member]
  package var ended: Ended?
  package var endedAt: Timestamp?

  package init(summary: CallSummary? = nil, members: [Member], ended: Ended? = nil, endedAt: Timestamp? = nil) {
    self.summary = summary
    self.members = members
    self.ended = ended
    self.endedAt = endedAt
  }
}

/// A lasting link, as the operator sees it.
package struct LinkSummary: Codable, Hashable, Sendable {
  /// The first characters of its id. The whole id lets anybody ask for the link's call; its other 84 bits stay unknown.
  package var link: String
  /// The device that made it.
  package var device: DeviceID
  package var madeAt: Timestamp
  package var expiresAt: Timestamp
  /// The call that runs.
  package var call: CallID?

  package init(_ stored: StoredLastingLink) {
    link = stored.id.shortName
    device = stored.device.device
    madeAt = stored.madeAt
    expiresAt = stored.expiresAt
    call = stored.opening?.call
  }
}

package struct ConnectedUser: Codable, Sendable {
  package var user: UserID
  /// The user's connected devices.
  package var devices: [DeviceID]
  /// The calls in which the user is ringing, joined or disconnected.
  package var calls: [CallID]

  package init(user: UserID, devices: [DeviceID], calls: [CallID]) {
    self.user = user
    self.devices = devices
    self.calls = calls
  }
}

package import MediaModel

/// About recordings (protocol section 13).
package enum RecordingsRequest: Codable, Sendable, Hashable {
  case start(StartRecording)
  case finish(FinishRecording)
  case list(ListRecordings)
  case get(GetRecording)
  case share(ShareRecording)
  case note(AddNote)
  case seen(SeenRecording)
  case delete(DeleteRecordings)
  case erase(EraseReel)
}

/// A device registers a recording that it makes, or has begun to make.
package struct StartRecording: Codable, Sendable, Hashable {
  package var statement: RecordingStatement
  package var reelKey: ReelKey
  package var grants: [RecordingGrant]?
  package var notes: [RecordingNote]?
  /// Alerts the readers other than this user, until a device of each has acknowledged that.
  package var alert: Bool?

  package init(
    statement: RecordingStatement, reelKey: ReelKey, grants: [RecordingGrant]? = nil, notes: [RecordingNote]? = nil,
    alert: Bool? = nil
  ) {
    self.statement = statement
    self.reelKey = reelKey
    self.grants = grants
    self.notes = notes
    self.alert = alert
  }
}

/// A device has sent all segments.
package struct FinishRecording: Codable, Sendable, Hashable {
  /// The device's last witness of a reel; `isEnd` is signed as true.
  package struct Reel: Codable, Sendable, Hashable {
    package var reel: UInt32
    package var segments: UInt32
    package var head: Base64Bytes
    package var at: Timestamp
    package var sigAlg: String
    package var signature: Base64Bytes

    package init(
      reel: UInt32, segments: UInt32, head: Base64Bytes, at: Timestamp, sigAlg: String, signature: Base64Bytes
    ) {
      self.reel = reel
      self.segments = segments
      self.head = head
      self.at = at
      self.sigAlg = sigAlg
      self.signature = signature
    }
  }
  package var id: RecordingID
  package var reels: [Reel]

  package init(id: RecordingID, reels: [Reel]) {
    self.id = id
    self.reels = reels
  }
}

package enum RecordingRole: String, Codable, Sendable, CaseIterable { case owner, reader }

package struct ListRecordings: Codable, Sendable, Hashable {
  /// Only those that started earlier.
  package var before: Timestamp?
  package var limit: Int?
  package var kind: RecordingKind?
  package var role: RecordingRole?

  package init(before: Timestamp? = nil, limit: Int? = nil, kind: RecordingKind? = nil, role: RecordingRole? = nil) {
    self.before = before
    self.limit = limit
    self.kind = kind
    self.role = role
  }
}

package struct GetRecording: Codable, Sendable, Hashable {
  package var id: RecordingID
  /// The first segment of each reel that is wanted; 0 by default.
  package var from: UInt32?
  /// The first note that is wanted; 0 by default.
  package var notes: UInt32?

  package init(id: RecordingID, from: UInt32? = nil, notes: UInt32? = nil) {
    self.id = id
    self.from = from
    self.notes = notes
  }
}

package struct ShareRecording: Codable, Sendable, Hashable {
  package var id: RecordingID
  package var grants: [RecordingGrant]
  package var notes: [RecordingNote]?

  package init(id: RecordingID, grants: [RecordingGrant], notes: [RecordingNote]? = nil) {
    self.id = id
    self.grants = grants
    self.notes = notes
  }
}

package struct AddNote: Codable, Sendable, Hashable {
  package var id: RecordingID
  package var number: UInt32
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package var note: RecordingNote {
    RecordingNote(number: number, ciphertext: ciphertext, sigAlg: sigAlg, signature: signature)
  }

  package init(id: RecordingID, number: UInt32, ciphertext: Base64Bytes, sigAlg: String, signature: Base64Bytes) {
    self.id = id
    self.number = number
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// The reader's client lets the owner know that the person has seen it.
package struct SeenRecording: Codable, Sendable, Hashable {
  package var id: RecordingID

  package init(id: RecordingID) { self.id = id }
}

/// A recorded user erases its own reels, the owner any.
package struct EraseReel: Codable, Sendable, Hashable {
  package var id: RecordingID
  /// The number of the reel; nil for all in which the user is recorded.
  package var participant: UInt32?

  package init(id: RecordingID, participant: UInt32? = nil) {
    self.id = id
    self.participant = participant
  }
}

package struct DeleteRecordings: Codable, Sendable, Hashable {
  package var ids: [RecordingID]

  package init(ids: [RecordingID]) {
    self.ids = ids
  }
}

/// A reader's part in a recording that begins.
package enum ReaderResult: String, Codable, Sendable, CaseIterable {
  /// Its grants are stored.
  case shared
  /// No device of the user can open anything.
  case noKeys = "no-keys"
  /// The user takes no recordings of this one.
  case unavailable
}

/// Reply of `recordings/start`.
package struct StartedRecording: Codable, Sendable, Hashable {
  package struct Limits: Codable, Sendable, Hashable {
    /// The most bytes of one segment.
    package var segmentBytes: Int
    /// The bytes that this user may still store.
    package var bytes: Int
    package var seconds: Int

    package init(segmentBytes: Int, bytes: Int, seconds: Int) {
      self.segmentBytes = segmentBytes
      self.bytes = bytes
      self.seconds = seconds
    }
  }
  package var recording: RecordingID
  /// For uploads to this recording, and nothing else.
  package var ticket: String
  package var limits: Limits
  /// The readers other than the owner. A reader who can be granted the recording, and was not yet, is left out.
  package var results: [UserID: ReaderResult]

  package init(recording: RecordingID, ticket: String, limits: Limits, results: [UserID: ReaderResult]) {
    self.recording = recording
    self.ticket = ticket
    self.limits = limits
    self.results = results
  }
}

package enum RecordingState: String, Codable, Sendable, CaseIterable {
  case running
  /// It runs, and nothing has come for a minute. It is not stored.
  case silent
  case finished
  /// Its time was over before its device finished it.
  case cutOff = "cut-off"
}

/// One recording in a user's list.
package struct RecordingEntry: Codable, Sendable, Hashable {
  package var id: RecordingID
  package var kind: RecordingKind
  package var role: RecordingRole
  /// The device that began it, as the server says. A client believes the statement's signature.
  package var by: Device
  package var call: CallID?
  package var startedAt: Timestamp
  /// From the start of the first segment to that of the last one.
  package var seconds: Int
  package var bytes: Int
  package var state: RecordingState
  /// When the last segment came, while it runs.
  package var heardAt: Timestamp?
  package var expiresAt: Timestamp
  /// When this user said that it has seen it; for the owner, when the first other reader did.
  package var seenAt: Timestamp?
  /// For this device, or else for the user's reading key.
  package var grant: RecordingGrant?

  package init(
    id: RecordingID, kind: RecordingKind, role: RecordingRole, by: Device, call: CallID?, startedAt: Timestamp,
    seconds: Int, bytes: Int, state: RecordingState, heardAt: Timestamp? = nil, expiresAt: Timestamp,
    seenAt: Timestamp? = nil, grant: RecordingGrant?
  ) {
    self.id = id
    self.kind = kind
    self.role = role
    self.by = by
    self.call = call
    self.startedAt = startedAt
    self.seconds = seconds
    self.bytes = bytes
    self.state = state
    self.heardAt = heardAt
    self.expiresAt = expiresAt
    self.seenAt = seenAt
    self.grant = grant
  }
}

/// Reply of `recordings/list`: newest first.
package struct RecordingList: Codable, Sendable, Hashable {
  package var recordings: [RecordingEntry]
  package init(recordings: [RecordingEntry]) { self.recordings = recordings }
}

/// A device in a recording, with the keys that it had.
package struct RecordedPerson: Codable, Sendable, Hashable {
  /// The number of its reel.
  package var participant: UInt32
  package var user: UserID
  package var device: DeviceID
  package var name: String?
  package var fingerprint: Base64Bytes
  package var keys: [DeviceKey]
  /// The stay in the call; nil for a device that recorded by itself.
  package var joinId: Base64Bytes?

  package init(
    participant: UInt32, user: UserID, device: DeviceID, name: String?, fingerprint: Base64Bytes, keys: [DeviceKey],
    joinId: Base64Bytes? = nil
  ) {
    self.participant = participant
    self.user = user
    self.device = device
    self.name = name
    self.fingerprint = fingerprint
    self.keys = keys
    self.joinId = joinId
  }
}

/// Reply of `recordings/get`: what a reader needs to open and check the recording, and a page of the segments of each reel.
package struct RecordingManifest: Codable, Sendable, Hashable {
  /// The key of a device's reel.
  package struct Key: Codable, Sendable, Hashable {
    package var reel: UInt32
    package var ciphertext: Base64Bytes
    package var sigAlg: String
    package var signature: Base64Bytes

    package init(reel: UInt32, _ key: ReelKey) {
      self.reel = reel
      ciphertext = key.ciphertext
      sigAlg = key.sigAlg
      signature = key.signature
    }
  }

  /// A reader, and how far it is, for the owner.
  package struct Reader: Codable, Sendable, Hashable {
    package var user: UserID
    package var seenAt: Timestamp?
    package var alertedAt: Timestamp?
    /// When a device of the user acknowledged the alert.
    package var reachedAt: Timestamp?

    package init(user: UserID, seenAt: Timestamp? = nil, alertedAt: Timestamp? = nil, reachedAt: Timestamp? = nil) {
      self.user = user
      self.seenAt = seenAt
      self.alertedAt = alertedAt
      self.reachedAt = reachedAt
    }
  }

  package var statement: RecordingStatement
  package var state: RecordingState
  package var bytes: Int
  package var people: [RecordedPerson]
  package var reelKeys: [Key]
  package var reels: [ReelPage]
  /// For the asking user.
  package var grants: [RecordingGrant]
  package var notes: [RecordingNote]
  /// The newest of each reel.
  package var witnesses: [ReelWitness]
  /// The keys of a call's recording, in the first page.
  package var trackKeys: [TrackKeys]?
  /// For the owner: those who may open it, or were alerted of it.
  package var readers: [Reader]?

  package init(
    statement: RecordingStatement, state: RecordingState, bytes: Int, people: [RecordedPerson], reelKeys: [Key],
    reels: [ReelPage], grants: [RecordingGrant], notes: [RecordingNote], witnesses: [ReelWitness],
    trackKeys: [TrackKeys]? = nil, readers: [Reader]? = nil
  ) {
    self.statement = statement
    self.state = state
    self.bytes = bytes
    self.people = people
    self.reelKeys = reelKeys
    self.reels = reels
    self.grants = grants
    self.notes = notes
    self.witnesses = witnesses
    self.trackKeys = trackKeys
    self.readers = readers
  }
}

extension StartedRecording: CustomStringConvertible { package var description: String { "ticket" } }
extension RecordedPerson: CustomStringConvertible { package var description: String { "person" } }

package import MediaModel

/// About recordings (protocol section 13).
package enum RecordingsRequest: Codable, Sendable, Hashable {
  case start(StartRecording)
  case finish(FinishRecording)
  case list(ListRecordings)
  case get(GetRecording)
  case share(ShareRecording)
  case note(AddNote)
  case delete(DeleteRecordings)
}

/// A device registers a recording that it makes, or has begun to make.
package struct StartRecording: Codable, Sendable, Hashable {
  package var statement: RecordingStatement
  package var reelKey: ReelKey
  package var grants: [RecordingGrant]?
  package var notes: [RecordingNote]?

  package init(
    statement: RecordingStatement, reelKey: ReelKey, grants: [RecordingGrant]? = nil, notes: [RecordingNote]? = nil
  ) {
    self.statement = statement
    self.reelKey = reelKey
    self.grants = grants
    self.notes = notes
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

  package init(id: RecordingID, from: UInt32? = nil) {
    self.id = id
    self.from = from
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

package struct DeleteRecordings: Codable, Sendable, Hashable {
  package var ids: [RecordingID]

  package init(ids: [RecordingID]) {
    self.ids = ids
  }
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

  package init(recording: RecordingID, ticket: String, limits: Limits) {
    self.recording = recording
    self.ticket = ticket
    self.limits = limits
  }
}

package enum RecordingState: String, Codable, Sendable, CaseIterable {
  case running, finished
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
  package var bytes: Int
  package var state: RecordingState
  package var expiresAt: Timestamp
  /// For this device, or else for the user's reading key.
  package var grant: RecordingGrant?

  package init(
    id: RecordingID, kind: RecordingKind, role: RecordingRole, by: Device, call: CallID?, startedAt: Timestamp,
    bytes: Int, state: RecordingState, expiresAt: Timestamp, grant: RecordingGrant?
  ) {
    self.id = id
    self.kind = kind
    self.role = role
    self.by = by
    self.call = call
    self.startedAt = startedAt
    self.bytes = bytes
    self.state = state
    self.expiresAt = expiresAt
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

  package init(
    statement: RecordingStatement, state: RecordingState, bytes: Int, people: [RecordedPerson], reelKeys: [Key],
    reels: [ReelPage], grants: [RecordingGrant], notes: [RecordingNote], witnesses: [ReelWitness],
    trackKeys: [TrackKeys]? = nil
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
  }
}

/// The user of a device may open a recording from now on.
package struct RecordingShared: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var kind: RecordingKind
  /// The device that began it, as the server says. A client believes the statement's signature.
  package var by: Device
  package var grant: RecordingGrant

  package init(recording: RecordingID, kind: RecordingKind, by: Device, grant: RecordingGrant) {
    self.recording = recording
    self.kind = kind
    self.by = by
    self.grant = grant
  }
}

extension RecordingShared: CustomStringConvertible { package var description: String { "shared" } }
extension StartedRecording: CustomStringConvertible { package var description: String { "ticket" } }
extension RecordedPerson: CustomStringConvertible { package var description: String { "person" } }

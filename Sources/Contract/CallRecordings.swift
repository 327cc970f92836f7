package import MediaModel

// The recording of a call: what its participants ask, and are told (protocol section 13.7).

/// Begins the recording of a call.
package struct StartCallRecording: Codable, Sendable, Hashable {
  package var statement: RecordingStatement
  package var grants: [RecordingGrant]?
  package var notes: [RecordingNote]?

  package init(statement: RecordingStatement, grants: [RecordingGrant]? = nil, notes: [RecordingNote]? = nil) {
    self.statement = statement
    self.grants = grants
    self.notes = notes
  }
}

/// This participant agrees to be recorded in these media; without any it does not, or no longer.
package struct ConsentToRecording: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var media: [RecordedMedium]
  /// Only without media: what was recorded of this user so far is deleted.
  package var erase: Bool?

  package init(recording: RecordingID, media: [RecordedMedium], erase: Bool? = nil) {
    self.recording = recording
    self.media = media
    self.erase = erase
  }
}

/// Reply of `record/consent`.
package struct Consented: Codable, Sendable, Hashable {
  /// The newest one that was announced: keys of later ones may be handed out.
  package var epoch: UInt32
  package init(epoch: UInt32) { self.epoch = epoch }
}

/// A sender seals the keys of some of its tracks in one epoch to the recording's key; opaque to the server.
package struct ExportTrackKeys: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var epoch: UInt32
  /// n of each, ascending.
  package var tracks: [UInt8]
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    recording: RecordingID, epoch: UInt32, tracks: [UInt8], ciphertext: Base64Bytes, sigAlg: String,
    signature: Base64Bytes
  ) {
    self.recording = recording
    self.epoch = epoch
    self.tracks = tracks
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// Keys of a participant's tracks in one epoch, as a reader gets them.
package struct TrackKeys: Codable, Sendable, Hashable {
  package var participant: ParticipantNumber
  package var epoch: UInt32
  /// The epoch's, which is signed with them.
  package var listHash: Base64Bytes
  package var tracks: [UInt8]
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(_ keys: ExportTrackKeys, of participant: ParticipantNumber, listHash: Base64Bytes) {
    self.participant = participant
    epoch = keys.epoch
    self.listHash = listHash
    tracks = keys.tracks
    ciphertext = keys.ciphertext
    sigAlg = keys.sigAlg
    signature = keys.signature
  }
}

package struct StopCallRecording: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package init(recording: RecordingID) { self.recording = recording }
}

// MARK: what participants are told

/// `recording` in the state of a call that is recorded.
package struct CallRecordingState: Codable, Sendable, Hashable {
  package struct Consent: Codable, Sendable, Hashable {
    package var participant: ParticipantNumber
    package var media: [RecordedMedium]

    package init(participant: ParticipantNumber, media: [RecordedMedium]) {
      self.participant = participant
      self.media = media
    }
  }

  package var statement: RecordingStatement
  package var since: Timestamp
  /// Without those who have not answered.
  package var consents: [Consent]
  /// The starter's word for the newest epoch that has one.
  package var running: RecordingRuns?

  package init(statement: RecordingStatement, since: Timestamp, consents: [Consent], running: RecordingRuns?) {
    self.statement = statement
    self.since = since
    self.consents = consents
    self.running = running
  }
}

package struct RecordingStarted: Codable, Sendable, Hashable {
  package var statement: RecordingStatement
  package var since: Timestamp

  package init(statement: RecordingStatement, since: Timestamp) {
    self.statement = statement
    self.since = since
  }
}

package struct RecordingConsent: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var participant: ParticipantNumber
  package var media: [RecordedMedium]

  package init(recording: RecordingID, participant: ParticipantNumber, media: [RecordedMedium]) {
    self.recording = recording
    self.participant = participant
    self.media = media
  }
}

/// The starter's first track keys of an epoch: its word that it goes on recording in that epoch.
package struct RecordingRuns: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var epoch: UInt32
  package var participant: ParticipantNumber
  package var tracks: [UInt8]
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(_ keys: ExportTrackKeys, by participant: ParticipantNumber) {
    recording = keys.recording
    epoch = keys.epoch
    self.participant = participant
    tracks = keys.tracks
    ciphertext = keys.ciphertext
    sigAlg = keys.sigAlg
    signature = keys.signature
  }
}

package struct RecordingStopped: Codable, Sendable, Hashable {
  package enum Reason: String, Codable, Sendable, CaseIterable {
    /// The starter or the call's initiator stopped it.
    case stopped
    case starterLeft = "starter-left"
    case callEnded = "call-ended"
    case diskFull = "disk-full"
    case quota
    /// The server could not store it.
    case unavailable
  }

  package var recording: RecordingID
  package var reason: Reason

  package init(recording: RecordingID, reason: Reason) {
    self.recording = recording
    self.reason = reason
  }
}

extension TrackSource {
  /// The medium to agree to before tracks of this source are recorded.
  package var recordedMedium: RecordedMedium {
    switch self {
    case .microphone: .audio
    case .camera: .video
    case .screen, .screenAudio: .screen
    }
  }
}

extension RecordingRuns: CustomStringConvertible { package var description: String { "word" } }
extension TrackKeys: CustomStringConvertible { package var description: String { "track keys" } }
extension ExportTrackKeys: CustomStringConvertible { package var description: String { "track keys" } }

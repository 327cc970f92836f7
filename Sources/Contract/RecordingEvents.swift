package import MediaModel

/// The user of a device may open a recording from now on, or is alerted of it.
package struct RecordingShared: Codable, Sendable, Hashable {
  package var recording: RecordingID
  package var kind: RecordingKind
  /// The device that began it, as the server says. A client believes the statement's signature.
  package var by: Device
  /// nil only in an alert of a device that has none.
  package var grant: RecordingGrant?
  /// The owner needs this user now. The event comes again until a device of the user has acknowledged it.
  package var alert: Bool?

  package init(
    recording: RecordingID, kind: RecordingKind, by: Device, grant: RecordingGrant?, alert: Bool? = nil
  ) {
    self.recording = recording
    self.kind = kind
    self.by = by
    self.grant = grant
    self.alert = alert
  }
}

/// A recording that a device has open grew, or its state changed.
package struct RecordingChanged: Codable, Sendable, Hashable {
  package struct Reel: Codable, Sendable, Hashable {
    package var participant: UInt32
    /// How many there are.
    package var segments: UInt32
    /// SHA-256 of the last of them; zeros if there is none.
    package var head: Base64Bytes

    package init(participant: UInt32, segments: UInt32, head: Base64Bytes) {
      self.participant = participant
      self.segments = segments
      self.head = head
    }
  }

  package var recording: RecordingID
  package var state: RecordingState
  package var reels: [Reel]
  /// The number behind the newest note, if one came since the last of these events.
  package var notes: UInt32?

  package init(recording: RecordingID, state: RecordingState, reels: [Reel], notes: UInt32? = nil) {
    self.recording = recording
    self.state = state
    self.reels = reels
    self.notes = notes
  }
}

/// A reader has seen a recording, or an alert has reached it: for the owner.
package struct RecordingMention: Codable, Sendable, Hashable {
  package var recording: RecordingID
  /// A device of the reader.
  package var by: Device

  package init(recording: RecordingID, by: Device) {
    self.recording = recording
    self.by = by
  }
}

/// A recording is not in the user's list any more.
package struct RecordingRemoved: Codable, Sendable, Hashable {
  package var recording: RecordingID
  /// The device that deleted it; nil for the operator.
  package var by: Device?

  package init(recording: RecordingID, by: Device?) {
    self.recording = recording
    self.by = by
  }
}

/// For the app's back end: a user got a message, or is alerted.
package struct PushRecording: Codable, Sendable, Hashable {
  package var user: UserID
  /// Those with keys that are not connected.
  package var devices: [DeviceID]
  package var from: UserID
  package var recording: RecordingID

  package init(user: UserID, devices: [DeviceID], from: UserID, recording: RecordingID) {
    self.user = user
    self.devices = devices
    self.from = from
    self.recording = recording
  }
}

extension RecordingShared: CustomStringConvertible { package var description: String { "shared" } }
extension RecordingMention: CustomStringConvertible { package var description: String { "mention" } }
extension RecordingRemoved: CustomStringConvertible { package var description: String { "removed" } }
extension PushRecording: CustomStringConvertible { package var description: String { "push" } }

package import Contract
package import MediaModel

/// News of the store of recordings for people.
package enum RecordingNews: Hashable, Sendable {
  /// Grants are stored. The `newcomers` could not open the recording before.
  case shared([RecordingShared], newcomers: Set<UserID>)
  case alert(RecordingAlert)
  /// For the owner.
  case seen(RecordingMention, owner: UserID)
  /// For all devices of the users, except the one that deleted it.
  case removed(RecordingRemoved, users: Set<UserID>)
  /// For devices that have it open; `owner` is charged.
  case changed(RecordingChanged, to: [Device], owner: UserID)

  /// The user whose doing it is; nil for the operator's.
  package var payer: UserID? {
    switch self {
    case .shared(let shared, _): shared.first?.grant?.from.user
    case .alert(let alert): alert.by.user
    case .seen(let mention, _): mention.by.user
    case .removed(let removed, _): removed.by?.user
    case .changed(_, _, let owner): owner
    }
  }
}

/// A recording of which users are alerted.
package struct RecordingAlert: Hashable, Sendable {
  /// A user who has not been reached in this time finds the recording in the list.
  package static let lifetime = Duration.seconds(86_400)

  package var recording: RecordingID
  package var kind: RecordingKind
  /// The device that records.
  package var by: Device
  package var at: Timestamp
  /// With their grants, if they have any.
  package var users: [UserID: [RecordingGrant]]
  /// It is from before a restart.
  package var isRestored: Bool

  package init(
    recording: RecordingID, kind: RecordingKind, by: Device, at: Timestamp, users: [UserID: [RecordingGrant]],
    isRestored: Bool = false
  ) {
    self.recording = recording
    self.kind = kind
    self.by = by
    self.at = at
    self.users = users
    self.isRestored = isRestored
  }
}

extension RecordingAlert: CustomStringConvertible { package var description: String { "alert" } }

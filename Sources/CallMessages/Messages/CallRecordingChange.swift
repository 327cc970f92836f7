package import Contract
package import MediaModel

/// A change of a call's recording, for the store and the thread that writes its reels. The changes of one recording are in order.
package enum CallRecordingChange: Hashable, Sendable {
  /// It begins. The store may refuse it: `NodeCommand.recordingFailed`.
  case began(StartCallRecording, author: RecordedPerson)
  /// A participant has agreed to something, so that a reel of it begins. Said once of a participant.
  case joined(RecordedPerson, RecordingID)
  /// Which frames of the participant may be stored from now on.
  case keeps(RecordedPeer)
  /// Keys of a participant's tracks, for the readers.
  case exported(TrackKeys, RecordingID)
  /// The participant's stay is over, and with it its reel.
  case went(RecordingID, PeerID)
  /// The user wants everything deleted that was recorded of it.
  case erased(RecordingID, UserID)
  case ended(RecordingID)
}

extension CallRecordingChange: CustomStringConvertible { package var description: String { "change" } }

import Contract
import MediaModel

/// An event of a recording, as the server tells it (protocol section 13.6).
public enum RecordingEvent: Sendable, Hashable {
  /// This user may open it from now on. `isAlert`: its user, who the server says is `by`, alerts this one: the person is needed, even if this device cannot play it.
  case shared(id: String, kind: RecordingInfo.Kind, by: String, isAlert: Bool)
  /// It grows, or its state changed. Only told for 60 s after `CallClient.openRecording`; open it again to follow it.
  case changed(id: String)
  /// A reader has seen it.
  case seen(id: String, by: String)
  /// A device of an alerted user has acknowledged the alert.
  case reached(id: String, by: String)
  /// It is gone.
  case removed(id: String)

  /// nil for an event about something else.
  init?(_ event: EventBody) {
    switch event {
    case .recordingShared(let shared):
      self = .shared(
        id: shared.recording.text, kind: RecordingInfo.Kind(shared.kind), by: shared.by.user.text,
        isAlert: shared.alert == true)
    case .recordingChanged(let changed): self = .changed(id: changed.recording.text)
    case .recordingSeen(let mention): self = .seen(id: mention.recording.text, by: mention.by.user.text)
    case .recordingReached(let mention): self = .reached(id: mention.recording.text, by: mention.by.user.text)
    case .recordingRemoved(let removed): self = .removed(id: removed.recording.text)
    default: return nil
    }
  }

  /// A later event of the same subject replaces an earlier one.
  struct Subject: Hashable, Sendable {
    var id: String
    var kind: Int
    var user: String?
  }

  var subject: Subject {
    switch self {
    case .shared(let id, _, _, let isAlert): Subject(id: id, kind: isAlert ? 0 : 1)
    case .changed(let id): Subject(id: id, kind: 2)
    case .seen(let id, let user): Subject(id: id, kind: 3, user: user)
    case .reached(let id, let user): Subject(id: id, kind: 4, user: user)
    case .removed(let id): Subject(id: id, kind: 5)
    }
  }
}

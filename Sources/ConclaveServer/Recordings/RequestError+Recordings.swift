import Contract
import Recording
import ReelStore

extension RequestError {
  /// Also for a recording that the user may not open.
  static let recordingNotFound = RequestError(
    .recordingNotFound, "there is no such recording, or this user may not open it")
  static let notTheRecordingsDevice = RequestError(.recordingNotAllowed, "only the device that records may do that")

  init(_ refusal: RecordingRefusal) {
    self =
      switch refusal {
      case .notFound: RequestError(.recordingEnded, "the recording has ended or is gone: begin another one")
      case .taken:
        RequestError(.recordingNotAllowed, "another recording has this id: take a random one", field: "statement.id")
      case .conflict(let position):
        RequestError(
          .recordingIncomplete, "upload the segments from `next` on, then finish again", next: position.next)
      case .quota: RequestError(.recordingFull, "there is no room left: delete recordings")
      case .drafts:
        RequestError(
          .recordingFull, "nobody can open the recordings that this user began last: share some, or delete them")
      case .grants:
        RequestError(
          .requestTooLarge,
          "at most \(RecordingStore.maximumReaders) users and \(RecordingStore.maximumGrants) grants for each",
          field: "grants")
      case .unopened:
        RequestError(
          .recordingNotAllowed,
          "a user has not opened \(RecordingStore.maximumUnopened) recordings of this one: wait until some are opened",
          field: "grants")
      case .diskFull: RequestError(.recordingFull, "the server's disk is full: try again later", retryAfterMs: 60_000)
      case .busy: RequestError(.serverBusy, "too much is uploaded: try again in a moment", retryAfterMs: 1_000)
      case .unavailable:
        RequestError(.recordingUnavailable, "the store of recordings does not answer: try again", retryAfterMs: 5_000)
      case .invalid, .unsigned: RequestError(.requestInvalid, "name each reel of the recording", field: "reels")
      case .tooLarge, .tooLong: RequestError(.requestTooLarge, "the recording is as long as it may be")
      }
  }
}

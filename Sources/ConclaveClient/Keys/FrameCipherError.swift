/// Why a frame was not encrypted or decrypted. Drop the frame in all cases except `unknownKey` and `otherTrack`.
public enum FrameCipherError: Error, Sendable, Hashable {
  /// There is no key yet; a device without a key sends nothing.
  case noKey
  /// The own track is muted, or the call is on hold: nothing of it is encrypted, whatever the app feeds.
  case muted
  /// The frame's key has not arrived; keep the frame for up to a second, and at most 64 of a slot (`WaitingFrames`).
  case unknownKey
  /// The frame's key belongs to another track than the slot's. The slot may have changed its track, and the news may be on its way: keep the
  /// frame as for `unknownKey`, and try again at the next `CallUpdate.slots`.
  case otherTrack
  /// Not an SFrame, another key, changed bytes, or metadata that does not belong to it.
  case notAuthentic
  /// The frame was delivered before, or is too old to tell.
  case replayed
  /// The buffer given for the result is too small.
  case noSpace
}

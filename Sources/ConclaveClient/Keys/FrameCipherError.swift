/// Why a frame was not encrypted or decrypted. Drop the frame in every case but `unknownKey` and `otherTrack`.
public enum FrameCipherError: Error, Sendable, Hashable {
  /// There is no key yet; who holds none sends nothing.
  case noKey
  /// The own track is muted, or the call on hold: nothing of it is encrypted, whatever the app feeds.
  case muted
  /// The frame's key has not arrived; keep the frame for up to a second, and at most 64 of a slot (`WaitingFrames`).
  case unknownKey
  /// The frame's key is of another track than the slot's. The slot may have changed its track, and the news be on its way: keep the frame as for
  /// `unknownKey`, and try again at the next `CallUpdate.slots`.
  case otherTrack
  /// Not an SFrame, another key, changed bytes, or metadata that does not belong to it.
  case notAuthentic
  /// The frame was delivered before, or is too old to tell.
  case replayed
  /// The buffer given for the result is too small.
  case noSpace
}

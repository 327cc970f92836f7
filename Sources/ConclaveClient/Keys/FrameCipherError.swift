/// Why a frame was not encrypted or decrypted. Drop the frame in every case but `unknownKey`.
public enum FrameCipherError: Error, Sendable, Hashable {
  /// There is no key yet; who holds none sends nothing.
  case noKey
  /// The frame's key has not arrived; keep the frame for up to a second, and at most 64 of a track.
  case unknownKey
  /// Not an SFrame, another key, changed bytes, or metadata that does not belong to it.
  case notAuthentic
  /// The frame was delivered before, or is too old to tell.
  case replayed
  /// The buffer given for the result is too small.
  case noSpace
}

package import Octets

/// Why a frame was not encrypted or decrypted. All but `noSpace` and `counterExhausted` are a peer's or the network's fault: drop the frame.
package enum SFrameError: Error, Sendable, Hashable {
  case header(SFrameHeaderError)
  /// Shorter than its header and tag require.
  case truncated
  /// The frame's KID is not the context's.
  case wrongKeyID
  /// The tag does not fit: another key, other metadata, or changed bytes.
  case authenticationFailed
  /// The counter was seen before, or is too old to tell.
  case replayed
  /// The context has used its last counter; a new key is needed.
  case counterExhausted
  /// The caller's buffer is too small.
  case noSpace
}

package import MediaModel

/// The result of opening a received SRTP or SRTCP packet.
package enum Unprotected: Sendable, Equatable {
  /// The plain packet is the first `length` bytes of the buffer.
  case packet(length: Int)
  /// The buffer's content is undefined.
  case dropped(DropReason)
}

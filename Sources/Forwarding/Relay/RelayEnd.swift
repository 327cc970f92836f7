package import MediaModel

/// The other side of relayed tracks: a worker relays tracks to it, and gets tracks from it.
///
/// The SFU treats all ends alike: it sends what an end wishes, and believes an end only about the peers that it has. A new kind of end is a
/// case here and the row in `RelayPort.link(to:)` that the compiler then asks for. A worker of another server needs no case: only its row.
package enum RelayEnd: Hashable, Sendable, BitwiseCopyable {
  case worker(WorkerAddress)
  /// The thread of this server that writes the reels of recorded calls. It has no peers.
  case recorder
}

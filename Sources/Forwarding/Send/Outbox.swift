package import MediaModel
import Octets

/// The datagrams that one SFU wants sent: for each receiver in contiguous memory, so that equal lengths leave as one GSO run.
///
/// The worker sends `runs` in order and then calls `reset`. Memory is one pool, bounded and reused; an outbox serves one SFU.
package final class Outbox {
  /// Bytes of one chunk: below the 65,000 that one message may have, and not a multiple of a page, so that chunks do not fall on the same cache
  /// lines.
  static let chunkSize = 64_960
  /// The kernel's limit for UDP_SEGMENT.
  static let maximumSegments = 64

  let chunks: Int
  let runCapacity: Int
  let memory: UnsafeMutableRawPointer
  let runStorage: UnsafeMutablePointer<DatagramRun>
  /// In flat memory, because each packet changes it and a class's properties are guarded at run time.
  var state: UnsafeMutablePointer<State> { stateBox.pointer }
  private let stateBox = Box(State())

  struct State {
    var usedChunks = 0
    var usedRuns = 0
    var isUrgent = false
    /// Since the outbox was made.
    var datagrams: UInt64 = 0
    var bytes: UInt64 = 0
    /// Rises at each reset; a cursor of another generation is stale.
    var generation: UInt64 = 1
  }

  /// Where one receiver's next datagram goes in the outbox. Owned by the receiver, read and written only by `Outbox`.
  struct Cursor {
    /// The outbox's generation that the other fields belong to.
    var generation: UInt64 = 0
    /// Where the next datagram begins, and where the chunk ends.
    var next = 0
    var end = 0
    /// The run that ends at `next`, and its datagrams; meaningless while there are none.
    var run = 0
    var segments = 0
    /// The run has all the segments that it may have, or a short segment that ends it.
    var isFull = false
  }

  /// - Parameter chunks: 65 kB each, taken from the system only when touched; the number of receivers that can be served between two resets.
  package init(chunks: Int = 4096) {
    self.chunks = chunks
    runCapacity = chunks * 8
    memory = .allocate(byteCount: chunks * Outbox.chunkSize, alignment: 64)
    runStorage = .allocate(capacity: runCapacity)
  }

  deinit {
    memory.deallocate()
    runStorage.deallocate()
  }

  /// The datagrams to send, oldest first. Valid until the next call on the SFU or the outbox.
  package var runs: UnsafeBufferPointer<DatagramRun> {
    UnsafeBufferPointer(start: runStorage, count: state.pointee.usedRuns)
  }

  package var isEmpty: Bool { state.pointee.usedRuns == 0 }

  /// It contains something that should not wait for more video: audio, STUN, DTLS, RTCP.
  package var isUrgent: Bool { state.pointee.isUrgent }

  /// Send before handling the next datagram, or copies may be dropped for lack of room.
  package var isNearlyFull: Bool {
    state.pointee.usedChunks * 4 > chunks * 3 || state.pointee.usedRuns * 4 > runCapacity * 3
  }

  /// Forgets everything; the memory is reused.
  package func reset() {
    state.pointee.usedChunks = 0
    state.pointee.usedRuns = 0
    state.pointee.isUrgent = false
    state.pointee.generation &+= 1
  }
}

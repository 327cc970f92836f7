import MediaModel

extension Outbox {
  /// Room for a datagram of at most `length` bytes behind the lane's last one; nil when the pool is used up. Not kept unless committed.
  func reserve(_ length: Int, _ lane: inout Lane) -> UnsafeMutableRawBufferPointer? {
    if lane.generation != state.pointee.generation || lane.end - lane.next < length {
      guard state.pointee.usedChunks < chunks, length <= Outbox.chunkSize else { return nil }
      let start = state.pointee.usedChunks * Outbox.chunkSize
      state.pointee.usedChunks += 1
      lane = Lane(generation: state.pointee.generation, next: start, end: start + Outbox.chunkSize)
    }
    guard state.pointee.usedRuns < runCapacity else { return nil }
    return UnsafeMutableRawBufferPointer(start: memory + lane.next, count: length)
  }

  /// Keeps the first `length` bytes of what was just reserved as a datagram to `destination`: in the lane's open run if it fits there, else in a new one.
  func commit(_ length: Int, _ lane: inout Lane, to destination: SocketAddress, isUrgent: Bool) {
    let start = lane.next
    lane.next = start + length
    state.pointee.datagrams &+= 1
    state.pointee.bytes &+= UInt64(length)
    if isUrgent { state.pointee.isUrgent = true }
    let segment = openSegment(lane)
    if length <= segment, runStorage[lane.run].destination == destination {
      runStorage[lane.run].length += length
      lane.segments += 1
      lane.isFull = length < segment || lane.segments == Outbox.maximumSegments
      return
    }
    lane.run = state.pointee.usedRuns
    lane.segments = 1
    lane.isFull = false
    (runStorage + lane.run).initialize(
      to: DatagramRun(base: memory + start, length: length, segment: length, destination: destination))
    state.pointee.usedRuns += 1
  }

  /// How many bytes longer a datagram of `length` bytes must be to keep the lane's run of equal lengths going; 0 when it fits, or never will.
  func padding(for length: Int, _ lane: Lane) -> Int { max(0, openSegment(lane) - length) }

  /// The segment length of the lane's run while another datagram may join it, else 0.
  private func openSegment(_ lane: Lane) -> Int {
    guard lane.generation == state.pointee.generation, lane.segments > 0, !lane.isFull else { return 0 }
    return runStorage[lane.run].segment
  }
}

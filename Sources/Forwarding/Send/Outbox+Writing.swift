import MediaModel

extension Outbox {
  /// Room for a datagram of at most `length` bytes after the cursor's last one; nil if the pool is used up. Not kept unless committed.
  func reserve(_ length: Int, _ cursor: inout Cursor) -> UnsafeMutableRawBufferPointer? {
    if cursor.generation != state.pointee.generation || cursor.end - cursor.next < length {
      guard state.pointee.usedChunks < chunks, length <= Outbox.chunkSize else { return nil }
      let start = state.pointee.usedChunks * Outbox.chunkSize
      state.pointee.usedChunks += 1
      cursor = Cursor(generation: state.pointee.generation, next: start, end: start + Outbox.chunkSize)
    }
    guard state.pointee.usedRuns < runCapacity else { return nil }
    return UnsafeMutableRawBufferPointer(start: memory + cursor.next, count: length)
  }

  /// Keeps the first `length` bytes of the last reservation as a datagram to `destination`: in the cursor's open run if it fits there, else in a new one.
  func commit(_ length: Int, _ cursor: inout Cursor, to destination: SocketAddress, isUrgent: Bool) {
    let start = cursor.next
    cursor.next = start + length
    state.pointee.datagrams &+= 1
    state.pointee.bytes &+= UInt64(length)
    if isUrgent { state.pointee.isUrgent = true }
    let segment = openSegment(cursor)
    if length <= segment, runStorage[cursor.run].destination == destination {
      runStorage[cursor.run].length += length
      cursor.segments += 1
      cursor.isFull = length < segment || cursor.segments == Outbox.maximumSegments
      return
    }
    cursor.run = state.pointee.usedRuns
    cursor.segments = 1
    cursor.isFull = false
    (runStorage + cursor.run).initialize(
      to: DatagramRun(base: memory + start, length: length, segment: length, destination: destination))
    state.pointee.usedRuns += 1
  }

  /// How many bytes longer a datagram of `length` bytes must be to continue the cursor's run of equal lengths; 0 if it fits, or never will.
  func padding(for length: Int, _ cursor: Cursor) -> Int { max(0, openSegment(cursor) - length) }

  /// The segment length of the cursor's run while another datagram can join it, else 0.
  private func openSegment(_ cursor: Cursor) -> Int {
    guard cursor.generation == state.pointee.generation, cursor.segments > 0, !cursor.isFull else { return 0 }
    return runStorage[cursor.run].segment
  }
}

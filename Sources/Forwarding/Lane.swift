/// Where one receiver's next datagram goes in the outbox. Owned by the receiver, read and written by `Outbox` alone.
struct Lane {
  /// The outbox's generation that the rest belongs to.
  var generation: UInt64 = 0
  /// Where the next datagram begins, and how far the chunk reaches.
  var next = 0
  var end = 0
  /// The run that ends at `next`, and its datagrams; meaningless while there are none.
  var run = 0
  var segments = 0
  /// The run has all the segments that it may have, or a short one that ends it.
  var isFull = false
}

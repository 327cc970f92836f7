import Octets

/// Splits what arrives over a TCP connection into datagrams again: each is preceded by its length in two bytes (RFC 4571
/// section 2).
///
/// Keeps only what has arrived of one incomplete datagram. For one thread.
package final class FramedInput {
  /// The bytes that `split` needs free before the received ones.
  package let headroom: Int
  private let maximum: Int
  private let rest: UnsafeMutableRawPointer
  private var count = 0

  /// - Parameter maximum: the longest accepted datagram, in bytes.
  package init(maximum: Int) {
    self.maximum = maximum
    headroom = 2 + maximum
    rest = .allocate(byteCount: headroom, alignment: 1)
  }

  deinit { rest.deallocate() }

  /// - Parameters:
  ///   - buffer: `headroom` bytes, then the received ones.
  ///   - each: gets each whole datagram in place, and may change it.
  /// - Returns: false if a length exceeds the maximum: nothing after it can be read.
  package func split(
    _ buffer: UnsafeMutableRawBufferPointer, each: (UnsafeMutableRawBufferPointer) -> Void
  ) -> Bool {
    precondition(buffer.count >= headroom)
    var next = headroom - count
    if count > 0 { UnsafeMutableRawBufferPointer(rebasing: buffer[next...]).copyMemory(from: kept) }
    count = 0
    while buffer.count - next >= 2 {
      let length = Int(buffer.bytes.uint16(at: next))
      guard length <= maximum else { return false }
      let end = next + 2 + length
      guard end <= buffer.count else { break }
      // A null packet has no meaning.
      if length > 0 { each(buffer.part(next + 2..<end)) }
      next = end
    }
    count = buffer.count - next
    UnsafeMutableRawBufferPointer(start: rest, count: count).copyMemory(
      from: UnsafeRawBufferPointer(rebasing: buffer[next...]))
    return true
  }

  private var kept: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: rest, count: count) }
}

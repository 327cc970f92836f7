package import MediaModel
import Octets

/// Prefixes datagrams with their lengths for a TCP connection (RFC 4571 section 2), and keeps the rest of one that the connection took in part.
///
/// A connection that does not accept all bytes loses whole datagrams, as any path that is too narrow does. Only a datagram that was begun must be finished. For one
/// thread.
package final class FramedOutput {
  /// The longest datagram.
  package static let maximum = 2_046
  private let rest: UnsafeMutableRawPointer
  private var count = 0

  package init() { rest = .allocate(byteCount: 2 + Self.maximum, alignment: 1) }

  deinit { rest.deallocate() }

  /// The end of a datagram that was begun, which must leave first.
  package var unfinished: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: rest, count: count) }

  /// Writes what must leave first, then the run's datagrams, to the start of `buffer`.
  /// - Returns: the bytes to send; nil if the buffer is too small or a datagram too long.
  package func frame(_ run: DatagramRun, into buffer: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard run.segment <= Self.maximum, buffer.count >= count + run.length + 2 * run.count else { return nil }
    buffer.copyMemory(from: unfinished)
    var end = count
    var next = 0
    while next < run.length {
      let length = min(run.segment, run.length - next)
      buffer.store(UInt16(truncatingIfNeeded: length), at: end)
      UnsafeMutableRawBufferPointer(rebasing: buffer[(end + 2)...]).copyMemory(
        from: UnsafeRawBufferPointer(start: run.base + next, count: length))
      end += 2 + length
      next += length
    }
    return UnsafeRawBufferPointer(rebasing: buffer[..<end])
  }

  /// Records that the connection accepted the first `taken` bytes that `frame` wrote.
  /// - Returns: how many of the run's datagrams are lost.
  package func took(_ taken: Int, of framed: UnsafeRawBufferPointer) -> Int {
    var start = 0
    var end = count
    var lost = 0
    keep(framed[min(taken, end)..<end])
    while end < framed.count {
      start = end
      end = start + 2 + Int(framed.bytes.uint16(at: start))
      if taken <= start {
        lost += 1
      } else if taken < end {
        keep(framed[taken..<end])
      }
    }
    return lost
  }

  /// The connection took the first `taken` bytes of `unfinished`.
  package func tookUnfinished(_ taken: Int) {
    count -= taken
    rest.copyMemory(from: rest + taken, byteCount: count)
  }

  private func keep(_ bytes: Slice<UnsafeRawBufferPointer>) {
    count = bytes.count
    UnsafeMutableRawBufferPointer(start: rest, count: count).copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
  }
}

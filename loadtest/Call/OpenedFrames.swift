import ConclaveClient
import Glibc
import Octets

/// The frames that the participants of one thread opened last.
///
/// All receivers of a track get the same bytes, so one of them opens a frame for the others: in a call of 1,000 the
/// test would otherwise need several times the server's CPU time. A frame counts as opened only if it equals the opened
/// one in all bytes.
final class OpenedFrames {
  struct Content {
    var opened: FrameCipher.Opened
    /// nil for a frame of another program.
    var frame: TestFrame?
  }

  private static let capacity = 256
  /// Larger frames are not kept.
  private static let largestFrame = 32_768
  private let memory = UnsafeMutableRawPointer.allocate(byteCount: capacity * largestFrame, alignment: 64)
  private var entries = [(length: Int, content: Content)?](repeating: nil, count: capacity)

  deinit { memory.deallocate() }

  /// The content of the frame, if a participant has opened it.
  func content(of frame: UnsafeRawBufferPointer) -> Content? {
    guard let place = place(of: frame), let entry = entries[place], entry.length == frame.count,
      let start = frame.baseAddress, memcmp(memory + place * Self.largestFrame, start, frame.count) == 0
    else { return nil }
    return entry.content
  }

  func keep(_ content: Content, of frame: UnsafeRawBufferPointer) {
    guard let place = place(of: frame), let start = frame.baseAddress else { return }
    memcpy(memory + place * Self.largestFrame, start, frame.count)
    entries[place] = (frame.count, content)
  }

  /// The place depends on the authentication tag, which is the end of the frame.
  private func place(of frame: UnsafeRawBufferPointer) -> Int? {
    guard 8...Self.largestFrame ~= frame.count else { return nil }
    return Int(frame.bytes.uint64(at: frame.count - 8) % UInt64(Self.capacity))
  }
}

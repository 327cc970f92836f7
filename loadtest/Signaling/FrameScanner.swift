import Glibc

/// Cuts a server's bytes into STOMP frames at their NUL. It is not a parser: bodies must not contain NUL, and those of
/// this test do not.
struct FrameScanner {
  /// The beginning of an incomplete frame.
  private var rest: [UInt8] = []
  /// No frame that this test asks for is as long.
  private static let longestFrame = 64 << 10

  /// Calls `body` with each frame, without its NUL and the line ends before it.
  /// - Returns: false when a frame is too long.
  mutating func scan(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
    var start = 0
    while let end = Self.end(of: bytes, from: start) {
      let frame = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      if rest.isEmpty {
        body(Self.withoutLineEnds(frame))
      } else {
        rest.append(contentsOf: frame)
        rest.withUnsafeBytes { body(Self.withoutLineEnds($0)) }
        rest.removeAll(keepingCapacity: true)
      }
      start = end + 1
    }
    rest.append(contentsOf: bytes[start...])
    return rest.count <= Self.longestFrame
  }

  private static func end(of bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard let base = bytes.baseAddress, start < bytes.count, let found = memchr(base + start, 0, bytes.count - start)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }

  private static func withoutLineEnds(_ frame: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let first = frame.firstIndex { $0 != 10 && $0 != 13 } ?? frame.count
    return UnsafeRawBufferPointer(rebasing: frame[first...])
  }
}

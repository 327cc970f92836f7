import Octets

/// SHA-256 of a segment's whole file.
package struct SegmentHash: Hashable, Sendable {
  package static let byteCount = 32
  /// Stands in the header of a reel's first segment.
  package static let zeros = SegmentHash(0, 0, 0, 0)

  private let words: Words

  private struct Words: Hashable, Sendable {
    var first: UInt64
    var second: UInt64
    var third: UInt64
    var fourth: UInt64
  }

  private init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
    words = Words(first: first, second: second, third: third, fourth: fourth)
  }

  /// nil unless there are 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.init(reading: bytes.span.bytes, at: 0)
  }

  /// Reads the 32 bytes from `offset` on, which are there.
  init(reading span: RawSpan, at offset: Int) {
    self.init(
      span.uint64(at: offset), span.uint64(at: offset + 8), span.uint64(at: offset + 16), span.uint64(at: offset + 24))
  }

  package var bytes: [UInt8] {
    [words.first, words.second, words.third, words.fourth].flatMap(\.networkOrderBytes)
  }
}

package import MediaModel
import Octets

/// The first 96 bytes of a segment's file. They are in the clear, and a sealed segment authenticates them.
package struct SegmentHeader: Hashable, Sendable {
  package static let byteCount = 96
  package static let nonceBytes = 12
  /// AES-GCM adds these to the contents.
  package static let tagBytes = 16
  /// The most bytes of a whole segment.
  package static let maximumSegmentBytes = 8 << 20
  package static let maximumNumber: UInt32 = 1 << 31
  /// Times are below this in microseconds since 1970, so that JavaScript's numbers hold them.
  package static let timeLimit: Int64 = 1 << 53

  /// Its contents are sealed as a whole, by the device that made it. Otherwise each frame in it is.
  package var isSealed: Bool
  package var recording: RecordingID
  /// From 1 on.
  package var reel: UInt32
  /// The segment's place in its reel, from 0 on.
  package var number: UInt32
  /// When it begins, in microseconds since 1970, by the clock of whoever made it.
  package var start: Int64
  /// The hash of the segment before.
  package var previous: SegmentHash
  /// 12 bytes for AES-GCM; zeros unless it is sealed.
  package var nonce: [UInt8]

  /// Reads the header at the start of a segment; what it describes follows it.
  package init(parsing segment: RawSpan) throws(SegmentHeaderError) {
    guard segment.byteCount >= Self.byteCount else { throw .truncated }
    guard segment.uint32(at: 0) == 0x4352_4543 else { throw .noSegment }
    guard segment[4] == 1 else { throw .version }
    guard segment[5] & ~1 == 0, segment.uint16(at: 6) == Self.byteCount,
      segment.uint64(at: 84) == 0, segment.uint32(at: 92) == 0
    else { throw .reserved }
    isSealed = segment[5] & 1 != 0
    guard let id = RecordingID((8..<24).map { segment[$0] }) else { throw .truncated }
    recording = id
    reel = segment.uint32(at: 24)
    guard reel > 0 else { throw .reel }
    number = segment.uint32(at: 28)
    guard number <= Self.maximumNumber else { throw .number }
    guard let start = Int64(exactly: segment.uint64(at: 32)), start < Self.timeLimit else { throw .start }
    self.start = start
    previous = SegmentHash(reading: segment, at: 40)
    guard number > 0 || previous == .zeros else { throw .previous }
    nonce = (72..<84).map { segment[$0] }
    guard isSealed || nonce.allSatisfy({ $0 == 0 }) else { throw .nonce }
  }
}

/// Why bytes are no header of a segment.
package enum SegmentHeaderError: Error, Hashable, Sendable {
  case truncated
  /// Its first bytes are not "CREC".
  case noSegment
  /// Made by another version of the format.
  case version
  /// A flag, a length or reserved bytes that this version does not know.
  case reserved
  /// Reels are numbered from 1.
  case reel
  case number
  case start
  /// The first segment follows no other.
  case previous
  /// Only a sealed segment has a nonce.
  case nonce
}

/// An SFrame header (RFC 9605 section 4.3): which key and which counter a frame was encrypted under. Strict: each value has one encoding only.
package struct SFrameHeader: Sendable, Hashable {
  package var keyID: UInt64
  package var counter: UInt64

  package init(keyID: UInt64, counter: UInt64) {
    self.keyID = keyID
    self.counter = counter
  }

  /// Counters are below this: a key is replaced long before.
  package static let counterLimit: UInt64 = 1 << 48

  /// Config byte, KID and CTR of 8 bytes each.
  package static let maximumByteCount = 17

  /// Bytes of the encoded header, 1 to 17.
  package var byteCount: Int { 1 + Self.extraBytes(keyID) + Self.extraBytes(counter) }

  /// Reads the header at the start of `frame`; what follows it starts at `byteCount`.
  package init(parsing frame: RawSpan) throws(SFrameHeaderError) {
    guard frame.byteCount > 0 else { throw .truncated }
    let config = frame[0]
    var offset = 1
    keyID = try Self.field(config >> 4, in: frame, at: &offset)
    counter = try Self.field(config & 0xf, in: frame, at: &offset)
  }

  /// Reads the header of a frame with H.264's emulation prevention: a 3 after two zeros is skipped (ITU-T H.264 section 7.4.1).
  package init(parsingEscaped frame: RawSpan) throws(SFrameHeaderError) {
    var header = InlineArray<17, UInt8>(repeating: 0)
    var count = 0
    var zeros = 0
    for offset in frame.byteOffsets {
      let byte = frame[offset]
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      header[count] = byte
      count += 1
      if count == Self.maximumByteCount { break }
    }
    self = try Self(parsing: header.span.bytes.extracting(0..<count))
  }

  /// Reads the value of a 4-bit field: the value itself below 8, else its length minus 1 with the top bit set.
  private static func field(
    _ field: UInt8, in frame: RawSpan, at offset: inout Int
  ) throws(SFrameHeaderError) -> UInt64 {
    guard field >= 8 else { return UInt64(field) }
    let count = Int(field & 7) + 1
    guard frame.byteCount - offset >= count else { throw .truncated }
    var value: UInt64 = 0
    for i in offset..<offset + count { value = value << 8 | UInt64(frame[i]) }
    guard extraBytes(value) == count else { throw .notMinimal }
    offset += count
    return value
  }

  /// Writes the header at the start of `buffer`, which holds at least `byteCount` bytes; returns `byteCount`.
  @discardableResult
  package func write(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    buffer[0] = Self.nibble(keyID) << 4 | Self.nibble(counter)
    var offset = 1
    Self.append(keyID, to: buffer, at: &offset)
    Self.append(counter, to: buffer, at: &offset)
    return offset
  }

  private static func append(_ value: UInt64, to buffer: UnsafeMutableRawBufferPointer, at offset: inout Int) {
    for remaining in (0..<extraBytes(value)).reversed() {
      buffer[offset] = UInt8(truncatingIfNeeded: value >> UInt64(8 * remaining))
      offset += 1
    }
  }

  private static func nibble(_ value: UInt64) -> UInt8 {
    value < 8 ? UInt8(value) : 0x8 | UInt8(extraBytes(value) - 1)
  }

  /// Bytes of a value outside the config byte: 0 below 8, else the fewest that hold it.
  private static func extraBytes(_ value: UInt64) -> Int {
    value < 8 ? 0 : (UInt64.bitWidth - value.leadingZeroBitCount + 7) / 8
  }
}

/// Why a frame has no readable header.
package enum SFrameHeaderError: Error, Sendable, Hashable {
  /// Shorter than its config byte says.
  case truncated
  /// A leading zero byte, or a value below 8 in the long form (RFC 9605 section 4.3 requires the shortest).
  case notMinimal
}

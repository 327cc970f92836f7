import Octets

/// VP8's payload descriptor (RFC 7741 section 4.2) as numbers and offsets into the payload from which it was read.
package struct VP8Descriptor: Equatable, Sendable {
  /// Bytes before the VP8 payload itself.
  package private(set) var length: Int
  /// S bit with partition 0: the packet begins a frame.
  package private(set) var startsFrame: Bool
  /// No other frame refers to its frame (RFC 7741 section 4.2, N).
  package private(set) var isDiscardable: Bool
  /// 7 or 15 bits; nil when absent.
  package private(set) var pictureID: UInt16?
  package private(set) var hasLongPictureID = false
  package private(set) var tl0PictureIndex: UInt8?
  package private(set) var temporalLayer: UInt8?
  /// 5 bits; nil when absent.
  package private(set) var keyIndex: UInt8?
  private var pictureIDOffset = 0
  private var tl0Offset = 0
  private var keyIndexOffset = 0

  /// nil if `payload` ends before its descriptor does.
  package init?(parsing payload: RawSpan) {
    guard payload.byteCount >= 1 else { return nil }
    let first = payload[0]
    startsFrame = first & 0x10 != 0 && first & 0x07 == 0
    isDiscardable = first & 0x20 != 0
    length = 1
    guard first & 0x80 != 0 else { return }
    guard payload.byteCount >= 2 else { return nil }
    let flags = payload[1]
    length = 2
    if flags & 0x80 != 0 {
      guard length < payload.byteCount else { return nil }
      pictureIDOffset = length
      hasLongPictureID = payload[length] & 0x80 != 0
      guard length + (hasLongPictureID ? 2 : 1) <= payload.byteCount else { return nil }
      pictureID = hasLongPictureID ? payload.uint16(at: length) & 0x7fff : UInt16(payload[length])
      length += hasLongPictureID ? 2 : 1
    }
    if flags & 0x40 != 0 {
      guard length < payload.byteCount else { return nil }
      tl0Offset = length
      tl0PictureIndex = payload[length]
      length += 1
    }
    if flags & 0x30 != 0 {
      guard length < payload.byteCount else { return nil }
      keyIndexOffset = length
      if flags & 0x20 != 0 { temporalLayer = payload[length] >> 6 }
      if flags & 0x10 != 0 { keyIndex = payload[length] & 0x1f }
      length += 1
    }
  }

  /// Whether the packet begins a key frame: P bit of the frame tag (RFC 7741 section 4.3), which senders of encrypted frames leave in the clear.
  package func isKeyFrame(_ payload: RawSpan) -> Bool {
    startsFrame && length < payload.byteCount && payload[length] & 0x01 == 0
  }

  /// Overwrites the numbers in a payload with this descriptor; fields that it lacks stay absent, and a 7-bit picture id gets the low 7 bits.
  package func rewrite(
    pictureID: UInt16, tl0PictureIndex: UInt8, keyIndex: UInt8, in payload: UnsafeMutableRawBufferPointer
  ) {
    if self.pictureID != nil {
      if hasLongPictureID {
        payload.store(pictureID | 0x8000, at: pictureIDOffset)
      } else {
        payload.store(UInt8(pictureID & 0x7f), at: pictureIDOffset)
      }
    }
    if self.tl0PictureIndex != nil { payload.store(tl0PictureIndex, at: tl0Offset) }
    if self.keyIndex != nil {
      payload.store(payload.bytes[keyIndexOffset] & 0xe0 | keyIndex & 0x1f, at: keyIndexOffset)
    }
  }
}

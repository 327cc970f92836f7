import Octets

/// VP9's payload descriptor (RFC 9628 section 4.2) as numbers, without the payload from which it was read.
package struct VP9Descriptor: Equatable, Sendable {
  /// Bytes before the VP9 payload itself.
  package private(set) var length = 1
  /// B: the packet begins a frame of a layer.
  package let startsFrame: Bool
  /// E: the packet ends it.
  package let endsFrame: Bool
  /// Not P: the frame refers to no earlier picture.
  package let isIntra: Bool
  package private(set) var temporalLayer: UInt8 = 0
  package private(set) var spatialLayer: UInt8 = 0

  /// The frame can be decoded without an earlier picture.
  package var isKeyFrame: Bool { isIntra && spatialLayer == 0 }

  /// nil if `payload` ends before its descriptor does, or has nothing behind it.
  package init?(parsing payload: RawSpan) {
    guard payload.byteCount > 0 else { return nil }
    let flags = payload[0]
    startsFrame = flags & 0x08 != 0
    endsFrame = flags & 0x04 != 0
    isIntra = flags & 0x40 == 0
    // Picture id, with 15 bits if preceded by an M bit.
    if flags & 0x80 != 0 {
      guard let first = next(payload) else { return nil }
      if first & 0x80 != 0 { guard next(payload) != nil else { return nil } }
    }
    // Layer indices, and TL0PICIDX in non-flexible mode.
    if flags & 0x20 != 0 {
      guard let layers = next(payload) else { return nil }
      temporalLayer = layers >> 5
      spatialLayer = layers >> 1 & 7
      if flags & 0x10 == 0 { guard next(payload) != nil else { return nil } }
    }
    // Up to three reference indices, each with a bit that says whether another follows.
    if flags & 0x50 == 0x50 {
      for _ in 0..<3 {
        guard let reference = next(payload) else { return nil }
        if reference & 1 == 0 { break }
      }
    }
    if flags & 0x02 != 0 { guard skipStructure(payload) else { return nil } }
    guard length < payload.byteCount else { return nil }
  }

  private mutating func next(_ payload: RawSpan) -> UInt8? {
    guard length < payload.byteCount else { return nil }
    length += 1
    return payload[length - 1]
  }

  /// The scalability structure (RFC 9628 section 4.2.1).
  private mutating func skipStructure(_ payload: RawSpan) -> Bool {
    guard let structure = next(payload) else { return false }
    // In range: 8 sizes of 4 bytes, and 255 pictures of 4 bytes.
    if structure & 0x10 != 0 { length += (Int(structure >> 5) + 1) * 4 }
    guard structure & 0x08 != 0 else { return length <= payload.byteCount }
    guard let pictures = next(payload) else { return false }
    for _ in 0..<pictures {
      guard let picture = next(payload) else { return false }
      length += Int(picture >> 2 & 3)
    }
    return length <= payload.byteCount
  }
}

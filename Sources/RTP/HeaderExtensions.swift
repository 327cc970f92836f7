import Octets

/// The elements of an RTP header extension in the one-byte (0xBEDE) or two-byte (0x100x) form of RFC 8285.
///
/// It stores only offsets; each call is given the packet from which the header was read.
package struct HeaderExtensions: Equatable, Sendable {
  /// One element's data; offsets count from the packet's start.
  package struct Element: Equatable, Sendable {
    package var id: UInt8
    package var offset: Int
    package var length: Int

    package var range: Range<Int> { offset..<offset + length }
  }

  package let hasTwoByteHeaders: Bool
  let offset: Int
  private let end: Int

  /// nil if the packet has no extension, or one of another profile.
  package init?(_ header: RTPHeader) {
    switch header.extensionProfile {
    case 0xbede: hasTwoByteHeaders = false
    case 0x1000...0x100f: hasTwoByteHeaders = true
    default: return nil
    }
    offset = header.extensionOffset
    end = header.extensionOffset + header.extensionLength
  }

  /// The first element with this id; nil if there is none before the end or the first broken element.
  package func element(_ id: UInt8, in packet: RawSpan) -> Element? {
    var position = offset
    while let element = next(from: &position, in: packet) {
      if element.id == id { return element }
    }
    return nil
  }

  /// The element at or after `position`, which is then moved past it.
  func next(from position: inout Int, in packet: RawSpan) -> Element? {
    while position < end, packet[position] == 0 { position += 1 }
    guard position < end else { return nil }
    let id: UInt8
    let start: Int
    let length: Int
    if hasTwoByteHeaders {
      guard position + 2 <= end else { return nil }
      id = packet[position]
      length = Int(packet[position + 1])
      start = position + 2
    } else {
      id = packet[position] >> 4
      // 15 ends the elements (RFC 8285 section 4.2); 0 with a length is padding that hides data.
      guard id != 15, id != 0 else { return nil }
      length = Int(packet[position] & 0x0f) + 1
      start = position + 1
    }
    guard start + length <= end else { return nil }
    position = start + length
    return Element(id: id, offset: start, length: length)
  }
}

/// The id that an extension of one peer has at another; 0 for an extension that is not passed on.
package struct HeaderExtensionMap: Sendable {
  private var ids = InlineArray<256, UInt8>(repeating: 0)

  /// Passes nothing on.
  package init() {}

  package subscript(id: UInt8) -> UInt8 {
    get { ids[Int(id)] }
    set { ids[Int(id)] = newValue }
  }
}

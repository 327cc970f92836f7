import Octets

/// Writes header extensions after the fixed header and the CSRCs of a packet that is being assembled (RFC 8285).
package struct HeaderExtensionWriter {
  private let packet: UnsafeMutableRawBufferPointer
  private let start: Int
  private let hasTwoByteHeaders: Bool
  private var length: Int

  /// - Parameters:
  ///   - packet: begins with `start` bytes of a header, and has room for the extensions.
  ///   - start: where the extension's own header goes.
  package init(
    _ packet: UnsafeMutableRawBufferPointer, at start: Int = RTPHeader.fixedLength, hasTwoByteHeaders: Bool = false
  ) {
    self.packet = packet
    self.start = start
    self.hasTwoByteHeaders = hasTwoByteHeaders
    length = start + 4
  }

  /// Adds one element. Writes nothing and returns false if it does not fit: the one-byte form has ids 1 to 14 and 1 to 16 bytes.
  @discardableResult
  package mutating func append(_ id: UInt8, _ data: Span<UInt8>) -> Bool {
    guard begin(id, data.count) else { return false }
    for i in data.indices { packet[length + i] = data[i] }
    length += data.count
    return true
  }

  @discardableResult
  package mutating func append(_ id: UInt8, _ number: UInt16) -> Bool {
    guard begin(id, 2) else { return false }
    packet.store(number, at: length)
    length += 2
    return true
  }

  /// - Parameter number: its lower 24 bits are written.
  @discardableResult
  package mutating func append(_ id: UInt8, low24Bits number: UInt32) -> Bool {
    guard begin(id, 3) else { return false }
    packet[length] = UInt8(truncatingIfNeeded: number >> 16)
    packet.store(UInt16(truncatingIfNeeded: number), at: length + 1)
    length += 3
    return true
  }

  @discardableResult
  package mutating func append(_ id: UInt8, _ text: String) -> Bool {
    guard begin(id, text.utf8.count) else { return false }
    for byte in text.utf8 {
      packet[length] = byte
      length += 1
    }
    return true
  }

  /// Adds the elements of another packet that `map` passes on, each with its new id. Nothing is passed on from the first broken element on,
  /// so that a receiver reads none of a peer's own ids. The packet must have the same form as this one.
  /// - Parameter noted: an id of the other packet.
  /// - Returns: where the data of the element with this id is now; nil if there is none.
  package mutating func append(
    _ elements: HeaderExtensions, of source: UnsafeRawBufferPointer, by map: borrowing HeaderExtensionMap,
    noting noted: UInt8
  ) -> Range<Int>? {
    var found: Range<Int>?
    var position = elements.offset
    while let element = elements.next(from: &position, in: source.bytes) {
      let id = map[element.id]
      guard id != 0, begin(id, element.length) else { continue }
      if element.length > 0 {
        let data = packet.baseAddress! + length
        data.copyMemory(from: source.baseAddress! + element.offset, byteCount: element.length)
      }
      if element.id == noted { found = length..<length + element.length }
      length += element.length
    }
    return found
  }

  /// Writes an element's own header. False if it does not fit.
  private mutating func begin(_ id: UInt8, _ count: Int) -> Bool {
    // Up to three bytes of padding follow the last element.
    guard length + 2 + count + 3 <= packet.count else { return false }
    if hasTwoByteHeaders {
      guard id != 0, count <= 255 else { return false }
      packet[length] = id
      packet[length + 1] = UInt8(count)
      length += 2
    } else {
      guard (1...14).contains(id), (1...16).contains(count) else { return false }
      packet[length] = id << 4 | UInt8(count - 1)
      length += 1
    }
    return true
  }

  /// Writes the extension's own header and padding; without elements there is no extension. Returns the length of the whole RTP header.
  package mutating func finish() -> Int {
    guard length > start + 4 else {
      packet[0] &= ~0x10
      return start
    }
    while length % 4 != 0 {
      packet[length] = 0
      length += 1
    }
    packet[0] |= 0x10
    packet.store(hasTwoByteHeaders ? UInt16(0x1000) : 0xbede, at: start)
    packet.store(UInt16((length - start - 4) / 4), at: start + 2)
    return length
  }
}

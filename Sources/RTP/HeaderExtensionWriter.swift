import Octets

/// Puts header extensions behind the fixed header of a packet that is being made (RFC 8285, one-byte form).
package struct HeaderExtensionWriter {
  private let packet: UnsafeMutableRawBufferPointer
  private var length = RTPHeader.fixedLength + 4

  /// `packet` begins with 12 bytes of `RTPHeader.write` and has room for the extensions.
  package init(_ packet: UnsafeMutableRawBufferPointer) { self.packet = packet }

  /// Adds one element: id 1 to 14, 1 to 16 bytes. False, and nothing is written, when it does not fit.
  @discardableResult
  package mutating func append(_ id: UInt8, _ data: Span<UInt8>) -> Bool {
    guard (1...14).contains(id), (1...16).contains(data.count), length + 1 + data.count + 3 <= packet.count else {
      return false
    }
    packet[length] = id << 4 | UInt8(data.count - 1)
    for i in data.indices { packet[length + 1 + i] = data[i] }
    length += 1 + data.count
    return true
  }

  /// Writes the extension's own header and padding. Returns the length of the whole RTP header.
  package mutating func finish() -> Int {
    guard length > RTPHeader.fixedLength + 4 else { return RTPHeader.fixedLength }
    while length % 4 != 0 {
      packet[length] = 0
      length += 1
    }
    packet[0] |= 0x10
    packet.store(UInt16(0xbede), at: RTPHeader.fixedLength)
    packet.store(UInt16((length - RTPHeader.fixedLength - 4) / 4), at: RTPHeader.fixedLength + 2)
    return length
  }
}

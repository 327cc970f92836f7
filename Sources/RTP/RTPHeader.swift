import Octets

/// The header of an RTP packet (RFC 3550 section 5.1) as numbers and offsets into the packet from which it was read.
///
/// It is read from a packet whose SRTP protection has been removed, because the padding's length is part of what SRTP
/// encrypts.
package struct RTPHeader: Equatable, Sendable {
  package var marker: Bool
  package var payloadType: UInt8
  package var sequenceNumber: UInt16
  package var timestamp: UInt32
  package var ssrc: UInt32
  /// Bytes before the payload: the fixed part, CSRCs and header extensions.
  package var headerLength: Int
  /// Bytes between header and padding.
  package var payloadLength: Int
  /// Bytes of padding at the packet's end, including the count; 0 without padding.
  package var paddingLength: Int
  /// "Defined by profile" of the header extension (RFC 3550 section 5.3.1); 0 if there is none.
  package var extensionProfile: UInt16
  /// Where the extension's elements begin: after profile and length.
  package var extensionOffset: Int
  /// Bytes of the extension's elements.
  package var extensionLength: Int

  /// Bytes of a header without CSRCs and extension.
  package static let fixedLength = 12

  /// nil if `packet` is not an RTP version 2 packet or its lengths contradict each other.
  package init?(parsing packet: RawSpan) {
    guard packet.byteCount >= Self.fixedLength, packet[0] >> 6 == 2 else { return nil }
    var offset = Self.fixedLength + 4 * Int(packet[0] & 0x0f)
    extensionProfile = 0
    extensionOffset = 0
    extensionLength = 0
    if packet[0] & 0x10 != 0 {
      guard offset + 4 <= packet.byteCount else { return nil }
      extensionProfile = packet.uint16(at: offset)
      extensionLength = 4 * Int(packet.uint16(at: offset + 2))
      extensionOffset = offset + 4
      offset = extensionOffset + extensionLength
    }
    guard offset <= packet.byteCount else { return nil }
    paddingLength = 0
    if packet[0] & 0x20 != 0 {
      paddingLength = Int(packet[packet.byteCount - 1])
      guard paddingLength > 0, offset + paddingLength <= packet.byteCount else { return nil }
    }
    headerLength = offset
    payloadLength = packet.byteCount - offset - paddingLength
    marker = packet[1] & 0x80 != 0
    payloadType = packet[1] & 0x7f
    sequenceNumber = packet.uint16(at: 2)
    timestamp = packet.uint32(at: 4)
    ssrc = packet.uint32(at: 8)
  }

  /// Where the payload is in the packet, without padding.
  package var payloadRange: Range<Int> { headerLength..<headerLength + payloadLength }
}

extension RTPHeader {
  /// Writes a header without padding, CSRCs and extension over the first 12 bytes of `packet`.
  package static func write(
    marker: Bool, payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
    into packet: UnsafeMutableRawBufferPointer
  ) {
    precondition(packet.count >= fixedLength && payloadType < 128)
    packet[0] = 0x80
    packet[1] = (marker ? 0x80 : 0) | payloadType
    packet.store(sequenceNumber, at: 2)
    packet.store(timestamp, at: 4)
    packet.store(ssrc, at: 8)
  }

  /// Writes a down-track's values into the header at the start of `packet`; marker, CSRCs and extension stay unchanged.
  package static func rewrite(
    payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
    in packet: UnsafeMutableRawBufferPointer
  ) {
    packet[1] = packet[1] & 0x80 | payloadType & 0x7f
    packet.store(sequenceNumber, at: 2)
    packet.store(timestamp, at: 4)
    packet.store(ssrc, at: 8)
  }

  package static func setMarker(in packet: UnsafeMutableRawBufferPointer) { packet[1] |= 0x80 }

  /// Sets or clears the padding bit. The caller writes the padding itself, with its count in the last byte.
  package static func setPadding(_ isPadded: Bool, in packet: UnsafeMutableRawBufferPointer) {
    packet[0] = isPadded ? packet[0] | 0x20 : packet[0] & ~0x20
  }
}

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

  /// Changes what a down-track changes in a header that stands at the start of `packet`; marker, CSRCs and extension stay.
  package static func rewrite(
    payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32,
    in packet: UnsafeMutableRawBufferPointer
  ) {
    packet[1] = packet[1] & 0x80 | payloadType & 0x7f
    packet.store(sequenceNumber, at: 2)
    packet.store(timestamp, at: 4)
    packet.store(ssrc, at: 8)
  }

  /// Sets or clears the padding bit; the padding itself, with its count in the last byte, is the caller's.
  package static func setPadding(_ isPadded: Bool, in packet: UnsafeMutableRawBufferPointer) {
    packet[0] = isPadded ? packet[0] | 0x20 : packet[0] & ~0x20
  }
}

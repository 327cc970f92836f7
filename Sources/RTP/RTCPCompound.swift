import Octets

/// The packets of one RTCP datagram, in order: a compound (RFC 3550 section 6.1) or a reduced-size one (RFC 5506). A view; allocates nothing.
///
/// It ends at the first broken packet, and then sets `isBroken`; the packets before it remain valid.
package struct RTCPCompound: Sequence, IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  /// A packet's lengths contradict each other, or it is not of version 2.
  package private(set) var isBroken = false

  /// `bytes` without SRTCP's protection. It must outlive the packets read from it.
  package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package mutating func next() -> RTCPPacket? {
    guard !isBroken, position < bytes.count else { return nil }
    guard let packet = parse() else {
      isBroken = true
      return nil
    }
    return packet
  }

  private mutating func parse() -> RTCPPacket? {
    let datagram = bytes.bytes
    guard position + 4 <= datagram.byteCount, datagram[position] >> 6 == 2 else { return nil }
    let end = position + 4 + 4 * Int(datagram.uint16(at: position + 2))
    guard end <= datagram.byteCount else { return nil }
    var bodyEnd = end
    if datagram[position] & 0x20 != 0 {
      // RFC 3550 section 6.4.1 requires a multiple of 4 and padding only in the last packet; libwebrtc pads each transport-wide report by
      // 1 to 3 bytes.
      let padding = Int(datagram[end - 1])
      guard padding > 0, padding <= end - position - 4 else { return nil }
      bodyEnd -= padding
    }
    let whole = bytes.part(position..<end)
    let count = Int(datagram[position] & 0x1f)
    let type = datagram[position + 1]
    let body = bytes.part(position + 4..<bodyEnd)
    position = end
    if type == RTCPType.transportFeedback, count == Int(TransportFeedback.format) {
      return TransportFeedback(parsing: whole).map { .transportFeedback($0) }
    }
    return Self.packet(type: type, count: count, body: body)
  }

  private static func packet(type: UInt8, count: Int, body: UnsafeRawBufferPointer) -> RTCPPacket? {
    let fields = body.bytes
    switch (type, count) {
    case (RTCPType.senderReport, _):
      return senderReport(count: count, body: body)
    case (RTCPType.receiverReport, _):
      guard body.count >= 4 + count * ReportBlock.length else { return nil }
      return .receiverReport(
        ssrc: fields.uint32(at: 0), ReportBlocks(body.part(4..<4 + count * ReportBlock.length)))
    case (RTCPType.bye, _):
      guard body.count >= 4 * count else { return nil }
      return .bye(Goodbye(body.part(0..<4 * count)))
    case (RTCPType.transportFeedback, 1):
      guard body.count >= 12, body.count % 4 == 0 else { return nil }
      return .nack(
        NACK(
          sender: fields.uint32(at: 0), media: fields.uint32(at: 4),
          missing: MissingSequenceNumbers(body.part(8..<body.count))))
    case (RTCPType.payloadFeedback, 1):
      guard body.count >= 8 else { return nil }
      return .pictureLoss(sender: fields.uint32(at: 0), media: fields.uint32(at: 4))
    case (RTCPType.payloadFeedback, 4):
      guard body.count >= 16, body.count % 8 == 0 else { return nil }
      return .fullIntraRequest(FullIntraRequest(sender: fields.uint32(at: 0), body.part(8..<body.count)))
    case (RTCPType.payloadFeedback, 15):
      // Application layer feedback (RFC 4585 section 6.4). "REMB" is one kind of it.
      guard body.count >= 16, fields.uint32(at: 8) == 0x5245_4d42 else { break }
      guard body.count >= 16 + 4 * Int(fields[12]) else { return nil }
      let mantissa = fields.uint32(at: 12) & 0x3ffff
      // Six bits of exponent are more than any rate has.
      return .receiverRate(Int(mantissa) << Swift.min(Int(fields[13] >> 2), 40))
    default: break
    }
    return .other(type: type, format: UInt8(count))
  }

  private static func senderReport(count: Int, body: UnsafeRawBufferPointer) -> RTCPPacket? {
    let fields = body.bytes
    guard body.count >= 24 + count * ReportBlock.length else { return nil }
    return .senderReport(
      SenderReport(
        ssrc: fields.uint32(at: 0), ntp: NTPTimestamp(rawValue: fields.uint64(at: 4)),
        rtpTimestamp: fields.uint32(at: 12), packetCount: fields.uint32(at: 16), octetCount: fields.uint32(at: 20),
        reports: ReportBlocks(body.part(24..<24 + count * ReportBlock.length))))
  }
}

import Octets

/// One packet of an RTCP compound. Its parts are views of the compound's memory, and valid as long as that is.
package enum RTCPPacket {
  case senderReport(SenderReport)
  case receiverReport(ssrc: UInt32, ReportBlocks)
  case bye(Goodbye)
  case nack(NACK)
  /// PLI (RFC 4585 section 6.3.1): `media` wants a key frame.
  case pictureLoss(sender: UInt32, media: UInt32)
  /// FIR (RFC 5104 section 4.3.1).
  case fullIntraRequest(FullIntraRequest)
  /// How the packets of our transport arrived (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).
  case transportFeedback(TransportFeedback)
  /// The rate that the receiver estimates for the path, in bit/s (REMB, draft-alvestrand-rmcat-remb-03 section 2.2).
  case receiverRate(Int)
  /// A type that the SFU does not use: SDES, APP, XR, …
  case other(type: UInt8, format: UInt8)
}

/// Packet types of RTCP (RFC 3550 section 12.1, RFC 4585 section 6.1).
package enum RTCPType {
  package static let senderReport: UInt8 = 200
  package static let receiverReport: UInt8 = 201
  package static let sourceDescription: UInt8 = 202
  package static let bye: UInt8 = 203
  package static let transportFeedback: UInt8 = 205
  package static let payloadFeedback: UInt8 = 206
}

/// A sender's clock and counts, and its reports on received streams (RFC 3550 section 6.4.1).
package struct SenderReport {
  package var ssrc: UInt32
  package var ntp: NTPTimestamp
  package var rtpTimestamp: UInt32
  package var packetCount: UInt32
  /// Payload bytes, without headers and padding.
  package var octetCount: UInt32
  package var reports: ReportBlocks
}

/// SSRCs that have ended (RFC 3550 section 6.6). At most 31.
package struct Goodbye: Sequence, IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// `bytes` is a whole number of SSRCs.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package mutating func next() -> UInt32? {
    guard position + 4 <= bytes.count else { return nil }
    defer { position += 4 }
    return bytes.bytes.uint32(at: position)
  }
}

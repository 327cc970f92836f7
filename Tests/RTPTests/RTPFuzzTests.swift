import RTP
import Seeded
import Testing

/// Mutated packets must be read or refused, never read beyond their end: in every build, the spans that parsers use
/// trap on that.
struct RTPFuzzTests {
  @Test(arguments: [11, 12, 13] as [UInt64])
  func mutatedPacketsAreReadWithinTheirBounds(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let captures = try ["chrome-vp8-plain", "chrome-vp9-l3t3key-e2ee", "firefox-vp8-plain"].map(Capture.init(named:))
    // Only headers, since what follows them is opaque.
    let corpus = captures.flatMap(\.rtp).map { Array($0.prefix(100)) } + [HeaderExtensionsTests.twoByte]
    var map = HeaderExtensionMap()
    for id in UInt8(1)...14 { map[id] = 15 - id }
    var read = 0
    for _ in 0..<4_000 {
      var packet = generator.mutated(corpus.randomElement(using: &generator)!)
      packet.withUnsafeMutableBytes { if exercise($0, map) { read += 1 } }
    }
    #expect(read > 500)
  }

  @Test(arguments: [21, 22, 23] as [UInt64])
  func mutatedCompoundsAreReadWithinTheirBounds(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let corpus = try Capture(named: "chrome-vp8-simulcast-e2ee").rtcp + [everyKind, padded]
    var read = 0
    for _ in 0..<4_000 {
      let compound = generator.mutated(corpus.randomElement(using: &generator)!)
      read += packets(compound, numbers).values.count
    }
    #expect(read > 500)
  }

  /// A transport-wide report with one byte of padding, as libwebrtc writes it, and a NACK.
  private var padded: [UInt8] {
    bytes("afcd0005 fa17fa17 43032fa0 00990001 3de80217 20019401 81cd0003 00000001 00000002 00050003")
  }

  private var everyKind: [UInt8] {
    written { buffer in
      var writer = RTCPWriter(buffer)
      writer.receiverReport(ssrc: 1, reports: [ReportBlock.example].span)
      writer.sourceDescription(ssrc: 1, cname: Array("name".utf8).span)
      writer.nack(sender: 1, media: 2, missing: ([1, 2, 90] as [UInt16]).span)
      writer.pictureLoss(sender: 1, media: 2)
      writer.fullIntraRequest(sender: 1, media: 2, sequence: 3)
      writer.bye(ssrc: 1)
      return writer.length
    }
  }

  /// Reads everything in a packet; false when it was refused.
  private func exercise(_ packet: UnsafeMutableRawBufferPointer, _ map: HeaderExtensionMap) -> Bool {
    let bytes = packet.bytes
    guard let header = RTPHeader(parsing: bytes) else { return false }
    precondition(header.headerLength + header.payloadLength + header.paddingLength == packet.count)
    if let extensions = HeaderExtensions(header) {
      for id in UInt8(0)...16 {
        guard let element = extensions.element(id, in: bytes) else { continue }
        precondition(element.range.upperBound <= header.headerLength)
      }
      let isCopied = copied(packet, header, extensions, by: map)
      precondition(isCopied)
    }
    let payload = UnsafeMutableRawBufferPointer(rebasing: packet[header.payloadRange])
    if let descriptor = VP8Descriptor(parsing: payload.bytes) {
      _ = descriptor.isKeyFrame(payload.bytes)
      descriptor.rewrite(pictureID: 1, tl0PictureIndex: 2, keyIndex: 3, in: payload)
    }
    return true
  }

  /// Copies the extensions into another packet, with room for exactly these. False when a byte beyond it changed.
  private func copied(
    _ packet: UnsafeMutableRawBufferPointer, _ header: RTPHeader, _ extensions: HeaderExtensions,
    by map: HeaderExtensionMap
  ) -> Bool {
    let start = header.extensionOffset - 4
    let end = header.headerLength + 8
    return withUnsafeTemporaryAllocation(byteCount: end + 8, alignment: 8) { copy in
      copy.initializeMemory(as: UInt8.self, repeating: 0xa5)
      copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<start]))
      var writer = HeaderExtensionWriter(
        UnsafeMutableRawBufferPointer(rebasing: copy[..<end]), at: start,
        hasTwoByteHeaders: extensions.hasTwoByteHeaders)
      _ = writer.append(extensions, of: UnsafeRawBufferPointer(packet), by: map, noting: 1)
      precondition(writer.finish() <= header.headerLength)
      return copy[end...].allSatisfy { $0 == 0xa5 }
    }
  }

  /// Reads everything in a packet: the sum prevents the reads from being optimised away.
  private func numbers(_ packet: RTCPPacket) -> Int {
    switch packet {
    case .senderReport(let report): report.reports.reduce(0) { $0 + Int($1.cumulativeLost) }
    case .receiverReport(_, let reports): reports.reduce(0) { $0 + Int($1.jitter) }
    case .bye(let goodbye): goodbye.reduce(0) { $0 + Int($1) }
    case .nack(let nack): nack.missing.reduce(0) { $0 + Int($1) }
    case .pictureLoss(_, let media): Int(media)
    case .fullIntraRequest(let request): request.reduce(0) { $0 + Int($1.sequence) }
    case .transportFeedback(let report): report.reduce(0) { $0 &+ Int($1.number) }
    case .receiverRate(let rate): rate & 0xffff
    case .other(let type, _): Int(type)
    }
  }
}

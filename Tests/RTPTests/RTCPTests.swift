import RTP
import Testing

extension ReportBlock {
  static let example = ReportBlock(
    ssrc: 0x0102_0304, fractionLost: 0x40, cumulativeLost: -2, highestSequence: 0x0001_fffe, jitter: 90,
    lastSenderReport: 0xb705_2000, delaySinceLastSenderReport: 0x0005_4000)
}

/// The results of `read` for the packets of `compound`, and whether it was malformed at the end. Views must not escape
/// `read`.
func packets<T>(_ compound: [UInt8], _ read: (RTCPPacket) -> T) -> (values: [T], isBroken: Bool) {
  compound.withUnsafeBytes {
    var compound = RTCPCompound($0)
    var values: [T] = []
    while let packet = compound.next() { values.append(read(packet)) }
    return (values, compound.isBroken)
  }
}

struct RTCPTests {
  @Test func senderReportSurvives() {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.senderReport(
        ssrc: 0x0a0b_0c0d, ntp: NTPTimestamp(rawValue: 0x1112_1314_1516_1718), rtpTimestamp: 0x2122_2324,
        packetCount: 3, octetCount: 400, reports: [ReportBlock.example].span)
      return writer.length
    }
    #expect(
      compound
        == bytes(
          """
          81c8000c 0a0b0c0d 11121314 15161718 21222324 00000003 00000190
          01020304 40fffffe 0001fffe 0000005a b7052000 00054000
          """))
    let (reports, isBroken) = packets(compound) { packet -> [ReportBlock] in
      guard case .senderReport(let report) = packet else { return [] }
      #expect(report.ssrc == 0x0a0b_0c0d)
      #expect(report.ntp.rawValue == 0x1112_1314_1516_1718)
      #expect(report.rtpTimestamp == 0x2122_2324)
      #expect(report.packetCount == 3)
      #expect(report.octetCount == 400)
      return Array(report.reports)
    }
    #expect(reports == [[.example]])
    #expect(!isBroken)
  }

  @Test func receiverReportSurvives() {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.receiverReport(ssrc: 5, reports: [ReportBlock.example, .example].span)
      writer.receiverReport(ssrc: 6)
      return writer.length
    }
    let (reports, _) = packets(compound) { packet -> [ReportBlock] in
      guard case .receiverReport(let ssrc, let reports) = packet else { return [] }
      #expect(ssrc == 5 || ssrc == 6)
      return Array(reports)
    }
    #expect(reports == [[.example, .example], []])
  }

  @Test func sourceDescriptionEndsWithAZeroByteOnAWord() {
    for (name, hex) in [
      ("ab", "81ca0003 00000009 0102 6162 00000000"), ("abc", "81ca0003 00000009 0103 616263 000000"),
    ] {
      let compound = written { buffer in
        buffer.initializeMemory(as: UInt8.self, repeating: 0xee)
        var writer = RTCPWriter(buffer)
        writer.sourceDescription(ssrc: 9, cname: Array(name.utf8).span)
        return writer.length
      }
      #expect(compound == bytes(hex))
    }
  }

  @Test func byeSurvives() {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.bye(ssrc: 0x0102_0304)
      return writer.length
    }
    #expect(compound == bytes("81cb0001 01020304"))
    #expect(packets(compound, gone).values == [[0x0102_0304]])
  }

  @Test func byeWithAReasonIsRead() {
    #expect(packets(bytes("82cb0004 00000001 00000002 03627965 00000000"), gone).values == [[1, 2]])
  }

  static let losses: [[UInt16]] = [
    [7], [7, 8, 23], [7, 24], [65_535, 0, 15], [65_530, 3], [1, 2, 3, 40, 41, 100],
  ]

  @Test(arguments: losses)
  func nackNamesEachMissingPacket(_ missing: [UInt16]) {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.nack(sender: 1, media: 2, missing: missing.span)
      return writer.length
    }
    let (read, isBroken) = packets(compound) { packet -> [UInt16] in
      guard case .nack(let nack) = packet else { return [] }
      #expect(nack.sender == 1)
      #expect(nack.media == 2)
      return Array(nack.missing)
    }
    #expect(read == [missing])
    #expect(!isBroken)
  }

  @Test func neighboursShareAPair() {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.nack(sender: 1, media: 2, missing: ([100, 101, 116, 117] as [UInt16]).span)
      return writer.length
    }
    #expect(compound == bytes("81cd0004 00000001 00000002 0064 8001 0075 0000"))
  }

  @Test func keyFrameRequestsSurvive() {
    let compound = written { buffer in
      var writer = RTCPWriter(buffer)
      writer.pictureLoss(sender: 1, media: 0x0203_0405)
      writer.fullIntraRequest(sender: 1, media: 0x0607_0809, sequence: 254)
      return writer.length
    }
    #expect(compound == bytes("81ce0002 00000001 02030405 84ce0004 00000001 00000000 06070809 fe000000"))
    let (media, _) = packets(compound) { packet -> [UInt32] in
      switch packet {
      case .pictureLoss(_, let media): [media]
      case .fullIntraRequest(let request): request.map { $0.ssrc + UInt32($0.sequence) }
      default: []
      }
    }
    #expect(media == [[0x0203_0405], [0x0607_0809 + 254]])
  }

  @Test func nothingIsWrittenWhereItDoesNotFit() {
    for capacity in 0..<52 {
      _ = written(capacity: capacity) { buffer in
        var writer = RTCPWriter(buffer)
        let fits = writer.senderReport(
          ssrc: 1, ntp: NTPTimestamp(rawValue: 2), rtpTimestamp: 3, packetCount: 4, octetCount: 5,
          reports: [ReportBlock.example].span)
        #expect(!fits)
        #expect(writer.length == 0)
        return 0
      }
    }
    _ = written(capacity: 19) { buffer in
      var writer = RTCPWriter(buffer)
      let twoPairsFit = writer.nack(sender: 1, media: 2, missing: ([1, 100] as [UInt16]).span)
      #expect(!twoPairsFit)
      #expect(writer.length == 0)
      let onePairFits = writer.nack(sender: 1, media: 2, missing: ([1] as [UInt16]).span)
      #expect(onePairFits)
      return 0
    }
  }

  @Test func unknownTypesAreSteppedOver() {
    let (kinds, isBroken) = packets(bytes("80ca0000 80cc0000 81cb0001 00000001")) { packet in
      if case .other(let type, let format) = packet { "\(type)/\(format)" } else { "known" }
    }
    #expect(kinds == ["202/0", "204/0", "known"])
    #expect(!isBroken)
  }

  static let broken: [(String, String)] = [
    ("three bytes", "80c900"),
    ("version 1", "40c90001 00000001"),
    ("longer than the datagram", "80c90002 00000001"),
    ("more report blocks than bytes", "81c90001 00000001"),
    ("more report blocks than bytes in a sender report", "81c80006 \(String(repeating: "00", count: 24))"),
    ("a sender report without its sender", "80c80000"),
    ("a BYE with more sources than bytes", "82cb0001 00000001"),
    ("a NACK without pairs", "81cd0002 00000001 00000002"),
    ("a PLI without media", "81ce0001 00000001"),
    ("a FIR with half an entry", "84ce0003 00000001 00000000 00000002"),
    ("transport-wide feedback without a chunk", "8fcd0004 00000001 00000002 00000001 00000000"),
    ("padding over the body", "a0c90001 00000008"),
    ("padding over the body by one byte", "a0c90001 00000005"),
    ("a NACK whose pairs end within padding", "a1cd0003 00000001 00000002 00050001"),
    ("padding of 0", "a0c90001 00000000"),
  ]

  @Test(arguments: broken)
  func stopsAt(_ what: String, _ hex: String) {
    let (values, isBroken) = packets(bytes("81cb0001 00000007") + bytes(hex), gone)
    #expect(values == [[7]])
    #expect(isBroken)
  }

  @Test func paddingIsNoPartOfTheBody() {
    let (values, isBroken) = packets(bytes("a1cd0005 00000001 00000002 00050000 00000000 00000008")) { packet in
      if case .nack(let nack) = packet { Array(nack.missing) } else { [UInt16]() }
    }
    #expect(values == [[5]])
    #expect(!isBroken)
  }

  /// aiortc's vector, and the bounds of exponent and count.
  @Test func aReceiversRate() {
    func rate(_ fields: String) -> Int? {
      let read = packets(bytes("8fce0005 00000001 00000000 52454d42 \(fields)")) { packet -> Int? in
        if case .receiverRate(let rate) = packet { rate } else { nil }
      }
      return read.isBroken ? nil : read.values.first ?? nil
    }
    #expect(rate("0113f7a0 96be96cf") == 4_160_000)
    #expect(rate("01000000 96be96cf") == 0)
    #expect(rate("01ffffff 96be96cf") == 0x3ffff << 40)
    #expect(rate("0213f7a0 96be96cf") == nil, "it declares two SSRCs and has one")
  }

  @Test func otherFeedbackOfApplicationsIsNoRate() {
    for text in ["8fce0002 00000001 00000000", "8fce0004 00000001 00000000 52454d43 0113f7a0"] {
      let (isOther, isBroken) = packets(bytes(text)) { if case .other(206, 15) = $0 { true } else { false } }
      #expect(isOther == [true] && !isBroken)
    }
  }

  /// pion/rtcp's vector from Chrome: a report that is padded by one byte, here followed by a PLI.
  @Test func transportFeedbackPaddedByOneByteEndsNoCompound() {
    let report = "afcd0005 fa17fa17 4303 2fa0 0099 0001 3de802 17 2001 94 01"
    let (kinds, isBroken) = packets(bytes(report + "81ce0002 00000001 00000002")) { packet in
      switch packet {
      case .transportFeedback(let report): "\(report.count) packet"
      case .pictureLoss(_, let media): "PLI of \(media)"
      default: "another"
      }
    }
    #expect(kinds == ["1 packet", "PLI of 2"])
    #expect(!isBroken)
  }

  private func gone(_ packet: RTCPPacket) -> [UInt32] {
    if case .bye(let goodbye) = packet { Array(goodbye) } else { [] }
  }
}

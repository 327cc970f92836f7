import RTP
import Testing

struct RTPHeaderTests {
  @Test func readsFixedHeader() throws {
    let packet = bytes("80 e0 1234 89abcdef 01020304 aabbcc")
    let header = try #require(parsed(packet))
    #expect(header.marker)
    #expect(header.payloadType == 96)
    #expect(header.sequenceNumber == 0x1234)
    #expect(header.timestamp == 0x89ab_cdef)
    #expect(header.ssrc == 0x0102_0304)
    #expect(header.payloadRange == 12..<15)
    #expect(header.extensionProfile == 0)
  }

  @Test func countsContributingSourcesExtensionAndPadding() throws {
    // 2 CSRCs, 1 word of extension, 3 bytes of payload, 2 of padding.
    let packet = bytes("b2 60 0001 00000002 00000003 0000000a 0000000b bede 0001 10ff0000 aabbcc 0002")
    let header = try #require(parsed(packet))
    #expect(header.extensionProfile == 0xbede)
    #expect(header.extensionOffset == 24)
    #expect(header.extensionLength == 4)
    #expect(header.payloadRange == 28..<31)
    #expect(header.paddingLength == 2)
  }

  @Test func takesPacketOfPaddingAlone() throws {
    let header = try #require(parsed(bytes("a0 60 0001 00000002 00000003 00000004")))
    #expect(header.payloadLength == 0)
    #expect(header.paddingLength == 4)
  }

  static let broken: [(String, String)] = [
    ("empty", ""),
    ("11 bytes", "80 60 0001 00000002 000000"),
    ("version 1", "40 60 0001 00000002 00000003"),
    ("CSRCs beyond the end", "81 60 0001 00000002 00000003"),
    ("extension header beyond the end", "90 60 0001 00000002 00000003 bede"),
    ("extension beyond the end", "90 60 0001 00000002 00000003 bede 0002 00000000"),
    ("padding of 0", "a0 60 0001 00000002 00000003 aa00"),
    ("padding over the payload", "a0 60 0001 00000002 00000003 aa03"),
    ("padding over the whole packet", "a0 60 0001 00000002 00000003 aaff"),
  ]

  @Test(arguments: broken)
  func refuses(_ what: String, _ hex: String) {
    #expect(parsed(bytes(hex)) == nil)
  }

  @Test func writesWhatItReads() throws {
    let packet = written { buffer in
      RTPHeader.write(
        marker: true, payloadType: 111, sequenceNumber: 0xfffe, timestamp: 0xfedc_ba98, ssrc: 7, into: buffer)
      return RTPHeader.fixedLength
    }
    #expect(packet == bytes("80 ef fffe fedcba98 00000007"))
  }

  @Test func rewritingKeepsMarkerSourcesAndExtension() throws {
    var packet = bytes("91 e0 0001 00000002 00000003 0000000a bede 0001 10ff0000 aa")
    packet.withUnsafeMutableBytes {
      RTPHeader.rewrite(payloadType: 97, sequenceNumber: 0x0a0b, timestamp: 0x0c0d_0e0f, ssrc: 0x1122_3344, in: $0)
    }
    #expect(packet == bytes("91 e1 0a0b 0c0d0e0f 11223344 0000000a bede 0001 10ff0000 aa"))
  }

  @Test func paddingBitIsSetAndCleared() {
    var packet = bytes("90 60")
    packet.withUnsafeMutableBytes { RTPHeader.setPadding(true, in: $0) }
    #expect(packet == bytes("b0 60"))
    packet.withUnsafeMutableBytes { RTPHeader.setPadding(false, in: $0) }
    #expect(packet == bytes("90 60"))
  }
}

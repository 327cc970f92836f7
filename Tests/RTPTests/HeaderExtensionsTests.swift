import RTP
import Testing

struct HeaderExtensionsTests {
  /// The figure of RFC 8285 section 4.2, ids 1 to 3: lengths 1, 2 and 4 with two bytes of padding in between.
  static let oneByte = bytes("90 60 0001 00000002 00000003 bede 0003 10a1 21b1b2 0000 33c1c2c3c4 ff")
  /// The figure of RFC 8285 section 4.3, ids 1 to 3: lengths 0, 1 and 4.
  static let twoByte = bytes("90 60 0001 00000002 00000003 1000 0003 0100 0201b1 00 0304c1c2c3c4 ff")

  @Test func findsElementsOfOneByteForm() throws {
    #expect(try data(1, in: Self.oneByte) == bytes("a1"))
    #expect(try data(2, in: Self.oneByte) == bytes("b1b2"))
    #expect(try data(3, in: Self.oneByte) == bytes("c1c2c3c4"))
    #expect(try data(4, in: Self.oneByte) == nil)
  }

  @Test func findsElementsOfTwoByteForm() throws {
    #expect(try data(1, in: Self.twoByte) == [])
    #expect(try data(2, in: Self.twoByte) == bytes("b1"))
    #expect(try data(3, in: Self.twoByte) == bytes("c1c2c3c4"))
    #expect(try data(4, in: Self.twoByte) == nil)
  }

  @Test func ignoresExtensionOfAnotherProfile() throws {
    let header = try #require(parsed(bytes("90 60 0001 00000002 00000003 abcd 0001 10a10000")))
    #expect(HeaderExtensions(header) == nil)
  }

  static let ends: [(String, String)] = [
    ("id 15 ends the elements", "bede 0001 f0aa 20bb"),
    ("id 0 with a length ends them", "bede 0001 01aaaa 20"),
    ("an element longer than the rest ends them", "bede 0001 1faa 20bb"),
    ("a two-byte header cut in half ends them", "1000 0001 0000 0002"),
    ("a two-byte element longer than the rest ends them", "1000 0001 0109 0200"),
  ]

  @Test(arguments: ends)
  func brokenElement(_ what: String, _ hex: String) throws {
    #expect(try data(2, in: bytes("90 60 0001 00000002 00000003") + bytes(hex)) == nil)
  }

  @Test func copiesWhatIsPassedOnUnderItsNewID() throws {
    var map = HeaderExtensionMap()
    map[1] = 14
    map[3] = 2
    #expect(
      Self.oneByte.withExtensions(by: map)
        == bytes("90 60 0001 00000002 00000003 bede 0002 e0a1 23c1c2c3c4 00 ff"))
    #expect(
      Self.twoByte.withExtensions(by: map)
        == bytes("90 60 0001 00000002 00000003 1000 0002 0e00 0204c1c2c3c4 ff"))
  }

  @Test func withoutElementsThereIsNoExtension() throws {
    let map = HeaderExtensionMap()
    for packet in [Self.oneByte, Self.twoByte] {
      #expect(packet.withExtensions(by: map) == bytes("80 60 0001 00000002 00000003 ff"))
    }
  }

  @Test func tellsWhereAnElementStandsNow() throws {
    var map = HeaderExtensionMap()
    map[3] = 2
    for packet in [Self.oneByte, Self.twoByte] {
      let header = try #require(parsed(packet))
      let elements = try #require(HeaderExtensions(header))
      let copy = written(capacity: 64) { buffer in
        packet.withUnsafeBytes { packet in
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<12]))
          var writer = HeaderExtensionWriter(buffer, at: 12, hasTwoByteHeaders: elements.hasTwoByteHeaders)
          writer.append(7, 0x0102)
          let place = writer.append(elements, of: packet, by: map, noting: 3)
          let other = writer.append(elements, of: packet, by: map, noting: 1)
          #expect(place.map { Array(buffer[$0]) } == bytes("c1c2c3c4"))
          #expect(other == nil)
          writer.append(5, "ab")
          return writer.finish()
        }
      }
      #expect(try data(7, in: copy) == [1, 2])
      #expect(try data(5, in: copy) == Array("ab".utf8))
    }
  }

  @Test func idOver14NeedsTheTwoByteForm() throws {
    var map = HeaderExtensionMap()
    map[3] = 18
    #expect(Self.oneByte.withExtensions(by: map) == bytes("80 60 0001 00000002 00000003 ff"))
    let twoByte = Self.twoByte.withExtensions(by: map)
    #expect(try data(18, in: twoByte) == bytes("c1c2c3c4"))
  }

  @Test func leavesOutEverythingBehindABrokenElement() throws {
    var map = HeaderExtensionMap()
    map[1] = 1
    map[2] = 2
    let packet = bytes("90 60 0001 00000002 00000003 bede 0002 10a1 f0 20b1 1fcccc ee")
    #expect(packet.withExtensions(by: map) == bytes("90 60 0001 00000002 00000003 bede 0001 10a1 0000 ee"))
  }

  @Test func writerMakesWhatTheReaderFinds() throws {
    let packet = written { buffer in
      RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 1, timestamp: 2, ssrc: 3, into: buffer)
      var extensions = HeaderExtensionWriter(buffer)
      extensions.append(4, [0x30].span)
      extensions.append(1, [0x85, 0x86].span)
      return extensions.finish()
    }
    #expect(packet == bytes("90 60 0001 00000002 00000003 bede 0002 4030 118586 000000"))
    #expect(try data(1, in: packet) == [0x85, 0x86])
  }

  @Test func writerWithoutElementsWritesNoExtension() {
    let packet = written { buffer in
      RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 1, timestamp: 2, ssrc: 3, into: buffer)
      var extensions = HeaderExtensionWriter(buffer)
      return extensions.finish()
    }
    #expect(packet == bytes("80 60 0001 00000002 00000003"))
  }

  @Test(arguments: [(0, 1), (15, 1), (1, 0), (1, 17), (1, 5)])
  func writerRefusesWhatDoesNotFit(id: UInt8, length: Int) {
    _ = written(capacity: 22) { buffer in
      var extensions = HeaderExtensionWriter(buffer)
      let fits = extensions.append(id, [UInt8](repeating: 1, count: length).span)
      #expect(!fits)
      return 0
    }
  }

  private func extensions(of packet: [UInt8]) throws -> HeaderExtensions {
    let header = try #require(parsed(packet))
    return try #require(HeaderExtensions(header))
  }

  private func data(_ id: UInt8, in packet: [UInt8]) throws -> [UInt8]? {
    let extensions = try extensions(of: packet)
    return packet.withUnsafeBytes { extensions.element(id, in: $0.bytes) }.map { Array(packet[$0.range]) }
  }
}

extension [UInt8] {
  /// The packet with the header extensions that `map` keeps.
  func withExtensions(by map: HeaderExtensionMap) -> [UInt8] {
    guard let header = parsed(self), let elements = HeaderExtensions(header) else { return self }
    let start = header.extensionOffset - 4
    let front = written(capacity: header.headerLength + 8) { buffer in
      withUnsafeBytes { packet in
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: packet[..<start]))
        var writer = HeaderExtensionWriter(buffer, at: start, hasTwoByteHeaders: elements.hasTwoByteHeaders)
        _ = writer.append(elements, of: packet, by: map, noting: 0)
        return writer.finish()
      }
    }
    return front + self[header.headerLength...]
  }
}

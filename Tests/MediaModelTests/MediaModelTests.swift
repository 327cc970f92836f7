import MediaModel
import Testing

@Test(arguments: ["1.1", "7.255", "4294967295.1"])
func aTrackIdIsParticipantDotNumber(text: String) {
  #expect(TrackID(text)?.description == text)
}

@Test(arguments: ["", "1", "1.", ".1", "1.0", "1.256", "01.1", "1.01", "+1.1", "-1.1", "1.1.1", "4294967296.1", " 1.1"])
func onlyCanonicalTextsAreTrackIds(text: String) {
  #expect(TrackID(text) == nil)
}

@Test func idsSortAsBytes() throws {
  let ids = try ["b", "a.b", "B", "a", "~"].map { try #require(UserID($0)) }
  #expect(ids.sorted().map(\.text) == ["B", "a", "a.b", "b", "~"])
}

@Test(arguments: [
  (SocketAddress(ipv4: 0xc000_0202, port: 5), "192.0.2.2", false, false),
  (SocketAddress(ipv4: 0x7f00_0001, port: 5), "127.0.0.1", true, false),
  (SocketAddress(ipv4: 0xa9fe_0101, port: 5), "169.254.1.1", false, true),
  (SocketAddress(high: 0, low: 1, port: 5), "0:0:0:0:0:0:0:1", true, false),
  (SocketAddress(high: 0xfe80 << 48, low: 2, port: 5), "fe80:0:0:0:0:0:0:2", false, true),
  (SocketAddress(high: 0xfd00 << 48, low: 2, port: 5), "fd00:0:0:0:0:0:0:2", false, false),
])
func anAddressKnowsItsKindAndDoesNotPrint(address: SocketAddress, text: String, loopback: Bool, linkLocal: Bool) {
  #expect(address.candidateAddress == text)
  #expect(address.isLoopback == loopback)
  #expect(address.isLinkLocal == linkLocal)
  #expect(!"\(address)".contains(text))
}

@Test(arguments: [
  ("", "", true),
  ("profile-level-id=42e01f;packetization-mode=1", "packetization-mode=1; profile-level-id=42e01f", true),
  ("packetization-mode=1", "packetization-mode=0", false), ("profile-id=0", "", false),
  ("max-fr=30", "max-fr=60", true),
])
func aFormatCarriesAnotherOfTheSameDecoding(one: String, other: String, carries: Bool) {
  let format = { PayloadFormat(payloadType: 96, codec: $0, clockRate: 90_000, parameters: $1) }
  #expect(format("H264", one).carries(format("h264", other)) == carries)
  #expect(!format("VP8", one).carries(format("VP9", one)))
}

@Test func timesAddAndSubtractInTheirOwnUnits() {
  let start = Timestamp(milliseconds: 1_000)
  #expect((start + .seconds(2)).milliseconds == 3_000)
  #expect((start + .seconds(2)) - start == .seconds(2))
  let instant = Instant(nanoseconds: 5)
  #expect(instant.advanced(by: .nanoseconds(-10)).nanoseconds == 0)
  #expect(instant.duration(to: Instant(nanoseconds: 2)) == .nanoseconds(-3))
}

@Test func aRunCountsItsLastShorterDatagram() {
  let base = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
  defer { base.deallocate() }
  let to = SocketAddress(ipv4: 1, port: 1)
  #expect(DatagramRun(base: base, length: 2_500, segment: 1_200, destination: to).count == 3)
  #expect(DatagramRun(base: base, length: 2_400, segment: 1_200, destination: to).count == 2)
}

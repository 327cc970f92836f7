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

@Test func idsOfTwoIncarnationsAreNeverTheSame() {
  let numbers: [UInt64] = [0, 1, 1 << 36 - 1, 1 << 36, 1 << 36 + 1, 1 << 63, .max]
  let incarnations: [UInt32] = [0, 1, 2, 1 << 27, 1 << 28 - 1]
  let ids = incarnations.map { incarnation in Set(numbers.map { PeerID($0, of: Incarnation(incarnation)) }) }
  for (place, some) in ids.enumerated() {
    for others in ids[(place + 1)...] { #expect(some.isDisjoint(with: others)) }
  }
  #expect(PeerID(5, of: Incarnation(2)).rawValue == 2 << 36 + 5)
}

@Test func theCounterOfAnIncarnationBeginsAgainAtItsEnd() {
  let incarnation = Incarnation(7)
  let last = PeerID(1 << 36 - 1, of: incarnation)
  #expect(last.number == 1 << 36 - 1 && last.rawValue >> 36 == 7)
  #expect(PeerID(1 << 36, of: incarnation) == PeerID(0, of: incarnation), "not the next incarnation's")
  #expect(PeerID(.max, of: incarnation) == last)
}

@Test func anIncarnationHas28Bits() {
  #expect(Incarnation(1 << 28 - 1).rawValue == 1 << 28 - 1 && Incarnation(1 << 28) == Incarnation(0))
  #expect(Incarnation(.max).rawValue == 1 << 28 - 1)
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

/// Rows: codec, the stream's parameters, the receiver's, whether the receiver decodes it.
@Test(arguments: [
  ("H264", "profile-level-id=42e01f;packetization-mode=1", "packetization-mode=1; profile-level-id=42e01f", true),
  ("H264", "packetization-mode=1", "packetization-mode=0", false),
  // A receiver of mode 1 accepts mode 0, which is the default.
  ("H264", "", "packetization-mode=1", true), ("H264", "packetization-mode=0", "", true),
  ("H264", "packetization-mode=2", "packetization-mode=1", false),
  // One profile in several notations, and without one: Constrained Baseline.
  ("H264", "profile-level-id=42c01f", "profile-level-id=42E034", true),
  ("H264", "profile-level-id=4d801f", "profile-level-id=42e01f", true),
  ("H264", "profile-level-id=58c01f", "profile-level-id=42e01f", true),
  ("H264", "profile-level-id=42001f", "profile-level-id=42e01f", true),
  ("H264", "", "profile-level-id=42e01f", true), ("H264", "profile-level-id=nonsen", "", true),
  // Levels and their asymmetry do not matter.
  ("H264", "level-asymmetry-allowed=1;profile-level-id=640c34", "profile-level-id=640c1f", true),
  (
    "H264", "level-asymmetry-allowed=0;profile-level-id=42e034", "level-asymmetry-allowed=1;profile-level-id=42e00a",
    true
  ),
  // Higher profiles contain lower ones.
  ("H264", "profile-level-id=42e01f", "profile-level-id=64001f", true),
  ("H264", "profile-level-id=4d001f", "profile-level-id=64001f", true),
  ("H264", "profile-level-id=640c1f", "profile-level-id=64001f", true),
  ("H264", "profile-level-id=64001f", "profile-level-id=f4001f", true),
  ("H264", "profile-level-id=64001f", "profile-level-id=640c1f", false),
  ("H264", "profile-level-id=4d001f", "profile-level-id=640c1f", false),
  ("H264", "profile-level-id=64001f", "profile-level-id=42e01f", false),
  ("H264", "profile-level-id=f4101f", "profile-level-id=f4001f", false),
  ("H264", "profile-level-id=2c101f", "profile-level-id=2c1020", true),
  ("VP9", "", "profile-id=0", true), ("VP9", "profile-id=0", "", true), ("VP9", "profile-id=2", "", false),
  ("VP9", "Profile-Id=2", "profile-id = 2", true), ("VP9", "", "profile-id=2", false),
  ("AV1", "", "level-idx=5;profile=0;tier=0", true), ("AV1", "level-idx=5;profile=0;tier=0", "", true),
  ("AV1", "profile=0", "profile=1", true), ("AV1", "profile=1", "profile=0", false),
  ("H265", "", "profile-id=1;tier-flag=0", true), ("H265", "tier-flag=1", "tier-flag=0", false),
  ("H265", "profile-id=2", "profile-id=1", false),
  ("VP8", "max-fr=30", "max-fr=60", true),
])
func aReceiverDecodesWhatTheParametersMean(codec: String, stream: String, receiver: String, decodes: Bool) {
  let format = { PayloadFormat(payloadType: 96, codec: $0, clockRate: 90_000, parameters: $1) }
  #expect(format(codec, stream).carries(format(codec.lowercased(), receiver)) == decodes)
  #expect(!format(codec, stream).carries(format("other", receiver)))
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

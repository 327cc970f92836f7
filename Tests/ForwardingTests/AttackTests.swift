import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// The published attacks on media servers, by their numbers in `notes/attacks.md`.
struct AttackTests {
  private let stranger = SocketAddress(ipv4: 0x0102_0304, port: 6666)

  /// A ClientHello of DTLS 1.2 that offers only TLS_NULL_WITH_NULL_NULL.
  private var hello: [UInt8] {
    let body: [UInt8] =
      [0xfe, 0xfd] + [UInt8](repeating: 7, count: 32) + [0, 0, 0, 2, 0, 0, 1, 0]
    let length = UInt8(body.count)
    return [22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, length + 12]
      + [1, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length] + body
  }

  @Test func helloFromAnotherAddressIsIgnoredAtEveryMoment() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    for _ in 0..<60 {
      call.receive(hello, from: stranger)
      call.run(milliseconds: 5)
    }
    try call.connect()
    for _ in 0..<20 {
      call.receive(hello, from: stranger)
      call.run(milliseconds: 20)
    }
    #expect(call.strayed.isEmpty)
    #expect(call.sfu.counters.drops(.unknownPeer) == 80)
    #expect(b.serials(of: a.tracks[0]).count > 10)
  }

  /// Even spoofed from the peer's own address.
  @Test func aForgedHelloFromThePeersAddressDoesNotEndItsAssociation() throws {
    let call = SimulatedCall()
    let peer = call.join()
    try call.connect()
    call.receive(hello, from: peer.address)
    call.run(milliseconds: 1000)
    #expect(call.sfu.counters.connected == 1)
    #expect(!call.events.contains { if case .disconnected = $0 { true } else { false } })
  }

  @Test func mediaFromAnUnvalidatedAddressIsNeitherUsedNorAnswered() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    for peer in [a, b] { peer.tracks.forEach { $0.isSending = false } }
    call.run(milliseconds: 200)
    let before = call.sfu.counters.forwarded
    let packet = try #require(
      a.tracks[0].nextFrame(extensions: a.configuration.extensions).first.flatMap(a.protect))
    call.receive(packet, from: stranger)
    call.receive([UInt8](repeating: 0x80, count: 12), from: stranger)
    call.receive([0x80, 200, 0, 1, 0, 0, 0, 0], from: stranger)
    call.run(milliseconds: 100)
    #expect(call.sfu.counters.forwarded == before)
    #expect(call.strayed.isEmpty)
    #expect(b.isConnected)
  }

  @Test func floodsOfBadPacketsLeaveTheCallAlone() throws {
    let call = SimulatedCall()
    for _ in 0..<3 { call.join() }
    try call.connect()
    var random = SplitMix64(seed: 5)
    for _ in 0..<100 {
      for _ in 0..<300 {
        var fake = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        fake[0] = 0x80
        fake[1] &= 0x7f
        call.receive(fake, from: Bool.random(using: &random) ? stranger : call.peers[0].address)
      }
      call.run(milliseconds: 10)
    }
    #expect(call.sfu.counters.drops(.unauthenticated) + call.sfu.counters.drops(.malformed) > 10_000)
    for (peer, track) in call.pairs where track.isVideo {
      let serials = peer.serials(of: track)
      #expect(serials.count > 60)
      #expect(serials == Array(serials.first!...serials.last!))
    }
    #expect(call.sfu.counters.connected == 3)
  }

  @Test func noiseOfEveryKindAndLengthIsDropped() throws {
    let call = SimulatedCall()
    for _ in 0..<2 { call.join() }
    try call.connect()
    var random = SplitMix64(seed: 6)
    var noise = (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }
    call.receive(noise, from: stranger)
    #expect(call.sfu.counters.drops(.tooLong) == 1)
    for length in 0..<1500 {
      noise[0] = UInt8.random(in: 0...255, using: &random)
      call.receive(Array(noise[..<length]), from: length % 2 == 0 ? stranger : call.peers[0].address)
      for kind in [0, 22, 0x80] as [UInt8] {
        noise[0] = kind
        call.receive(Array(noise[..<length]), from: call.peers[0].address)
      }
    }
    call.run(milliseconds: 500)
    #expect(call.strayed.isEmpty)
    #expect(call.sfu.counters.connected == 2)
    #expect(call.peers[1].serials(of: call.peers[0].tracks[0]).count > 20)
  }

  /// Bytes that are authentic but invalid: the content of SRTP is only a peer's claim.
  @Test func authenticNonsenseNeverTraps() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    call.run(milliseconds: 300)
    var random = SplitMix64(seed: 7)
    for i in 0..<3000 {
      let track = a.tracks[i % 2]
      var plain = track.nextFrame(extensions: a.configuration.extensions)[0]
      if Bool.random(using: &random) { plain = Array(plain.prefix(Int.random(in: 12...80, using: &random))) }
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let offset = Int.random(in: 0..<min(plain.count, 48), using: &random)
        if !(2...3).contains(offset) { plain[offset] = UInt8.random(in: 0...255, using: &random) }
      }
      plain[0] = plain[0] & 0x3f | 0x80
      if let bytes = a.protect(safe(plain)) { call.receive(bytes, from: a.address) }
      a.sendRTCP { writer in nonsense(&writer, b, &random) }
      b.sendRTCP { writer in nonsense(&writer, b, &random) }
      if i % 10 == 0 { call.run(milliseconds: 1) }
    }
    call.run(milliseconds: 1000)
    #expect(b.refused == 0)
    #expect(call.sfu.counters.connected == 2)
  }

  /// A packet whose header length is known to the test's sender, since SRTP needs it.
  private func safe(_ plain: [UInt8]) -> [UInt8] {
    if plain.withUnsafeBytes({ RTPHeader(parsing: $0.bytes) }) != nil { return plain }
    var plain = plain
    plain[0] = 0x80
    return plain
  }

  private func nonsense(_ writer: inout RTCPWriter, _ peer: TestPeer, _ random: inout SplitMix64) {
    let slot = peer.configuration.slots.randomElement(using: &random)!
    let numbers = (0..<40).map { _ in UInt16.random(in: 0...(.max), using: &random) }
    switch Int.random(in: 0..<4, using: &random) {
    case 0: writer.nack(sender: 1, media: slot.ssrc, missing: numbers.span)
    case 1: writer.receiverReport(ssrc: 1, reports: [report(of: slot.ssrc)].span)
    case 2:
      writer.senderReport(
        ssrc: 1001, ntp: .init(rawValue: random.next()), rtpTimestamp: 0, packetCount: .max, octetCount: .max)
    default: writer.bye(ssrc: UInt32.random(in: 0...3000, using: &random))
    }
  }

  @Test func replayedMediaIsForwardedOnce() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    let b = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    a.tracks[0].isSending = false
    call.run(milliseconds: 100)
    let plain = a.tracks[0].nextFrame(extensions: a.configuration.extensions)
    let before = call.sfu.counters.forwarded
    for packet in plain.compactMap(a.protect) {
      for _ in 0..<5 { call.receive(packet, from: a.address) }
    }
    #expect(call.sfu.counters.forwarded - before == UInt64(plain.count))
    // The same packets as RTX, with different contents: a nonce must not be used twice.
    for number in [a.tracks[0].sequenceNumber, a.tracks[0].sequenceNumber &- 1] {
      var again = try #require(a.tracks[0].retransmission(of: number))
      again[again.count - 1] ^= 1
      call.receive(try #require(a.protect(again)), from: a.address)
    }
    #expect(call.sfu.counters.forwarded - before == UInt64(plain.count))
    #expect(call.sfu.counters.drops(.duplicate) == 2)
    call.run(milliseconds: 50)
    #expect(b.streams.values.contains { !$0.packets.isEmpty })
    #expect(b.streams.values.allSatisfy { $0.duplicates == 0 })
  }

  @Test func peersWithTheSameSSRCsDoNotMix() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    let b = call.join([.camera])
    let c = call.join([])
    // b announces and uses a's numbers, which are also those of one of c's slots.
    let shared = c.configuration.slots[4].ssrc
    for peer in [a, b] {
      peer.configuration.tracks[0].ssrcs = [shared]
      peer.configuration.tracks[0].rtx = [shared: 42]
      peer.tracks[0] = TestTrack(peer.configuration.tracks[0], ssrc: shared, rtxSSRC: 42)
      call.configure(peer)
    }
    try call.connect()
    call.run(milliseconds: 1000)
    #expect(c.serials(of: a.tracks[0]).count > 50)
    #expect(c.serials(of: b.tracks[0]).count > 50)
    let used = c.streams.values.filter { !$0.serials.isEmpty }
    #expect(used.count == 2)
    for stream in used { #expect(Set(stream.serials.map { $0 >> 40 }).count == 1) }
  }

  @Test func aPeerCannotSendAsAnother() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    let b = call.join([.camera])
    let c = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    let forged = TestTrack(b.tracks[0].description, ssrc: b.tracks[0].ssrc, rtxSSRC: 1)
    forged.isMidSent = false
    let before = call.sfu.counters.forwarded
    for packet in forged.nextFrame(extensions: a.configuration.extensions) {
      call.receive(try #require(a.protect(packet)), from: a.address)
    }
    #expect(call.sfu.counters.forwarded == before)
    #expect(call.sfu.counters.drops(.unknownStream) > 0)
    #expect(c.isConnected)
  }

  @Test func latchedStreamsAreBounded() throws {
    let call = SimulatedCall()
    let a = call.join(announcesSSRCs: false)
    try call.connect()
    for ssrc in 0..<200 as Range<UInt32> {
      let track = TestTrack(a.tracks[1].description, ssrc: 5000 + ssrc, rtxSSRC: 1)
      track.payloadLength = 20
      for packet in track.nextFrame(extensions: a.configuration.extensions) {
        if let packet = a.protect(packet) { call.receive(packet, from: a.address) }
      }
    }
    #expect((1...4).contains(call.sfu.peers[0].streams.count))
  }

  @Test func aNackFloodHasABudget() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    let b = call.join([])
    b.sendsNacks = false
    try call.connect()
    call.run(milliseconds: 3000)
    let slot = try #require(b.configuration.slots.first { $0.kind == .video })
    let newest = try #require(b.streams[slot.ssrc]?.newest)
    let numbers = (0..<200).map { newest &- 200 &+ UInt16($0) }
    for _ in 0..<100 { b.sendRTCP { $0.nack(sender: 1, media: slot.ssrc, missing: numbers.span) } }
    call.run(milliseconds: 50)
    // 20 kB at once, since it does not report arrivals.
    #expect((10...40).contains(call.sfu.counters.retransmitted))
    #expect(a.isConnected)
  }
}

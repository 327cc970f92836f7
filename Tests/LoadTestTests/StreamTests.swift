import MediaModel
import Octets
import RTP
import Seeded
import Testing

@testable import ConclaveClient
@testable import loadtest

/// A sending stream and a receiving slot with a bad network between them, in virtual time.
struct StreamTests {
  private static let start = Instant(nanoseconds: 1_000_000_000)

  /// A cipher that opens what it encrypts, in the slot of these tests.
  private func cipher() throws -> FrameCipher {
    var generator = SystemRandomNumberGenerator()
    let sender = SenderIdentity(fingerprint: [1], joinId: [2])
    let derivation = SenderDerivation(
      call: try #require(CallID("c")), epoch: 1, listHash: [], secret: Epoch.secret(using: &generator))
    let cipher = FrameCipher()
    cipher.install(EpochKeys(epoch: 1, derivation: derivation, senders: [1: sender]))
    cipher.send(
      SendingKey(epoch: 1, participant: 1, joinId: sender.joinId, baseKey: derivation.baseKey(of: 1, sender)))
    cipher.assign(["1": TrackID(participant: 1, index: 1)], now: Self.start)
    return cipher
  }

  private func stream(video: Bool, _ cipher: FrameCipher) -> SendingStream {
    let local = LocalMedia(sendsAudio: !video, sendsVideo: video, audioSlots: 0, videoSlots: 0)
    return SendingStream(
      track: local.tracks[0], key: TrackKey(participant: 1, track: 1), cipher: cipher, videoKbps: 600, start: Self.start
    )
  }

  private func slot(video: Bool) -> ReceivingSlot {
    ReceivingSlot(RemoteMedia.Slot(mid: "1", isVideo: video, ssrc: 1, rtxSSRC: video ? 2 : nil))
  }

  private func give(
    _ packet: UnsafeRawBufferPointer, to slot: ReceivingSlot, _ now: Instant, _ surroundings: ReceivingSlot.Surroundings
  ) throws {
    let read = RTPHeader(parsing: packet.bytes)
    let header = try #require(read)
    slot.receive(
      packet.part(header.payloadRange), sequence: header.sequenceNumber, marker: header.marker, now: now, surroundings)
  }

  /// Sends frames for a second of virtual time; `network` returns the arrival times of each packet: none, one or
  /// several.
  private func run(
    video: Bool, network: (Int) -> [Duration], answersNacks: Bool = true
  ) throws -> (sent: Traffic, received: Traffic, tally: Tally) {
    let cipher = try cipher()
    let stream = stream(video: video, cipher)
    let slot = slot(video: video)
    let surroundings = ReceivingSlot.Surroundings(
      cipher: cipher, progress: PeerProgress(), statistics: Statistics(), opened: OpenedFrames(), hasGuests: false)
    var arrivals: [(at: Instant, number: UInt16)] = []
    var count = 0
    var now = Self.start
    for _ in 0..<3_000 {
      now = now.advanced(by: .milliseconds(1))
      if now < Self.start.advanced(by: .seconds(1)) { stream.advance(now, isMeasuring: true) }
      while let packet = stream.takeDue(now) {
        let number = packet.bytes.bytes.uint16(at: 2)
        arrivals += network(count).map { (now.advanced(by: $0), number) }
        count += 1
      }
      for arrival in arrivals where arrival.at <= now {
        try give(try #require(stream.ring.packet(arrival.number)).bytes, to: slot, now, surroundings)
      }
      arrivals.removeAll { $0.at <= now }
      for number in slot.handleTimeout(now, surroundings) where answersNacks {
        arrivals.append((now.advanced(by: .milliseconds(3)), number))
      }
    }
    return (
      stream.traffic, slot.received[TrackKey(participant: 1, track: 1)] ?? Traffic(), surroundings.statistics.tally
    )
  }

  @Test(arguments: [true, false]) func allArrivesInOrder(_ video: Bool) throws {
    let (sent, received, tally) = try run(video: video) { _ in [.zero] }
    #expect(sent.frames == (video ? 30 : 50))
    #expect(received == sent)
    #expect(tally.decryptFailures == 0)
    #expect(tally.nacked == 0)
  }

  @Test func reorderingAndDuplicatesLoseNothing() throws {
    var random = SeededGenerator(seed: 4)
    // The first packets arrive in order, since a stream begins with the first packet that arrives.
    let (sent, received, tally) = try run(video: true) { count in
      count < 10 ? [.zero] : (0...random.next() % 2).map { _ in .milliseconds(random.next() % 12) }
    }
    #expect(received == sent)
    #expect(tally.decryptFailures == 0)
  }

  @Test func lostPacketsComeAgain() throws {
    // The first and the last packets are received, since a receiver cannot miss packets of which it does not know.
    let (sent, received, tally) = try run(video: true) { $0 > 5 && $0 < 80 && $0 % 4 == 0 ? [] : [.zero] }
    #expect(received == sent)
    #expect(tally.nacked > 0)
    #expect(tally.abandoned == 0)
  }

  @Test func missingPacketsAreCountedAndTheRestGoesOn() throws {
    let (sent, received, tally) = try run(
      video: true, network: { $0 == 20 ? [] : [.zero] }, answersNacks: false)
    #expect(tally.abandoned == 1)
    #expect(received.frames == sent.frames - 1)
    #expect(tally.decryptFailures == 0)
  }

  @Test func latencyCountsFromWhenTheLastPacketWasDue() throws {
    let (_, _, tally) = try run(video: true) { _ in [.milliseconds(7)] }
    #expect(tally.latency.milliseconds(atShare: 0.5) > 6.9)
    #expect(tally.latency.milliseconds(atShare: 0.99) < 8.5)
  }
}

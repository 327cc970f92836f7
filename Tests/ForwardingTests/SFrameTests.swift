import MediaModel
import RTP
import Testing

@testable import Forwarding

/// A member that encrypts under the key ID of another member or track is not heard under it (protocol section 6). The
/// receiver is on another worker: the sender's worker checks before it relays anything.
struct SFrameTests {
  private let call = SimulatedCall(workers: 2)
  private let sender: TestPeer
  private let receiver: TestPeer

  init() throws {
    sender = call.join()
    receiver = call.join([])
    sender.configuration.isOnKeyList = true
    call.configure(sender)
    for track in sender.tracks { track.isSending = false }
    try call.connect()
    call.run(milliseconds: 100)
  }

  private func keyID(_ participant: UInt64, _ track: UInt64, epoch: UInt64 = 3) -> UInt64 {
    participant << 16 | track << 8 | epoch
  }

  /// An SFrame header with a key ID of up to six bytes and a counter below 8.
  private func header(_ keyID: UInt64, counter: UInt8 = 5) -> [UInt8] {
    var bytes: [UInt8] = []
    for shift in [40, 32, 24, 16, 8, 0] as [UInt64] where keyID >> shift > 0 {
      bytes.append(UInt8(keyID >> shift & 0xff))
    }
    return [0x80 | UInt8(bytes.count - 1) << 4 | counter] + bytes
  }

  /// The next frame with this header at the start of the encrypted bytes.
  private func frame(_ track: TestTrack, _ header: [UInt8]) throws -> [[UInt8]] {
    let isKeyFrame = track.wantsKeyFrame
    var packets = track.nextFrame(extensions: sender.configuration.extensions)
    let start = try #require(packets[0].withUnsafeBytes { RTPHeader(parsing: $0.bytes)?.headerLength })
    let place = start + (track.isVideo ? 6 + (isKeyFrame ? 10 : 3) : 0)
    packets[0].replaceSubrange(place..<place + header.count, with: header)
    return packets
  }

  /// The number of packets that were forwarded, and the number dropped as foreign.
  private func send(_ packets: [[UInt8]]) throws -> (forwarded: UInt64, foreign: UInt64) {
    func counts() -> (forwarded: UInt64, foreign: UInt64) {
      (call.counters(\.forwarded), call.sfu.counters.drops(.sframeForeign))
    }
    let before = counts()
    for packet in packets { call.receive(try #require(sender.protect(packet)), from: sender.address) }
    let after = counts()
    return (after.forwarded - before.forwarded, after.foreign - before.foreign)
  }

  @Test func ownKeyIDsPass() throws {
    for (index, track) in sender.tracks.enumerated() {
      for epoch in [0, 3, 255] as [UInt64] {
        let packets = try frame(track, header(keyID(1, UInt64(index + 1), epoch: epoch)))
        let result = try send(packets)
        #expect(result.forwarded == UInt64(packets.count) && result.foreign == 0)
      }
    }
  }

  @Test(arguments: [(2, 1), (2, 2), (1, 3), (65_537, 1), (0, 1)])
  func packetsThatNameAnotherAreDroppedWithTheRestOfTheirFrame(participant: UInt64, index: UInt64) throws {
    for track in sender.tracks {
      let packets = try frame(track, header(keyID(participant, index)))
      let result = try send(packets)
      #expect(result.forwarded == 0 && result.foreign == UInt64(packets.count))
    }
    // The next own frame is not affected.
    sender.tracks[1].wantsKeyFrame = true
    let packets = try frame(sender.tracks[1], header(keyID(1, 2)))
    #expect(try send(packets).forwarded == UInt64(packets.count))
  }

  @Test func anotherTrackOfOnesOwnIsForeignToo() throws {
    #expect(try send(frame(sender.tracks[0], header(keyID(1, 2)))).foreign == 1)
    let video = try frame(sender.tracks[1], header(keyID(1, 1)))
    #expect(try send(video).foreign == UInt64(video.count))
  }

  @Test func foreignSpeechMakesNoSpeaker() throws {
    sender.tracks[0].level = 10
    for _ in 0..<100 {
      _ = try send(frame(sender.tracks[0], header(keyID(2, 1))))
      call.run(milliseconds: 20)
    }
    #expect(call.speakers.isEmpty)
    for _ in 0..<100 {
      _ = try send(frame(sender.tracks[0], header(keyID(1, 1))))
      call.run(milliseconds: 20)
    }
    #expect(call.speakers.first == [1])
  }

  @Test func aRetransmissionIsLookedAtToo() throws {
    let track = sender.tracks[1]
    _ = try send(frame(track, header(keyID(1, 2))))
    let first = try frame(track, header(keyID(2, 2)))
    // Lost in flight, then sent again as RTX.
    track.history[track.sequenceNumber &- UInt16(first.count - 1)] = first[0]
    let again = try #require(track.retransmission(of: track.sequenceNumber &- UInt16(first.count - 1)))
    let result = try send([again])
    #expect(result.forwarded == 0 && result.foreign == 1)
  }

  @Test(arguments: [[], [0x80], [0x90, 0], [0x90, 0, 3], [0xf0, 1]])
  func speechWithoutAWholeHeaderIsDropped(payload: [UInt8]) throws {
    let track = sender.tracks[0]
    var packet = try frame(track, header(keyID(1, 1)))[0]
    let start = try #require(packet.withUnsafeBytes { RTPHeader(parsing: $0.bytes)?.headerLength })
    packet = packet[..<start] + payload
    let result = try send([packet])
    #expect(result.foreign == (payload.isEmpty ? 0 : 1), "an empty payload is a probe")
    #expect(result.forwarded == 0)
  }

  @Test func aParticipantWithoutKeysSendsWhatItLikes() throws {
    sender.configuration.isOnKeyList = false
    call.configure(sender)
    let packets = try frame(sender.tracks[1], header(keyID(2, 1)))
    #expect(try send(packets).forwarded == UInt64(packets.count))
  }
}

import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// Clients without features of browsers: RTX, audio levels, a separate stream for padding.
struct PlainClientTests {
  /// The same formats without RTX.
  private func plain(_ formats: [PayloadFormat]) -> [PayloadFormat] {
    formats.map { format in
      var format = format
      format.rtxPayloadType = nil
      return format
    }
  }

  // MARK: RTX

  /// A receiver without RTX gets the same packet again, under its own SSRC and number. No packet overtakes another,
  /// since packets before the first received one are not requested.
  @Test(arguments: 1...(isRelease ? 20 : 2) as ClosedRange<UInt64>)
  func aReceiverWithoutRTXGetsThePacketAgain(seed: UInt64) throws {
    let call = SimulatedCall(seed: seed, .init(loss: 0.05, delay: 20...20))
    let sender = call.join([.camera])
    let receiver = call.join([], audioSlots: 0, videoSlots: 1)
    receiver.configuration.slots[0].formats = plain(receiver.configuration.slots[0].formats)
    receiver.streams = [receiver.configuration.slots[0].ssrc: ReceivedStream(receiver.configuration.slots[0])]
    call.configure(receiver)
    try call.connect()
    let early = receiver.refused  // before it had keys, since its handshake lost packets
    call.run(milliseconds: 5000)
    sender.tracks[0].isSending = false
    call.network.conditions.loss = 0
    call.run(milliseconds: 1000)
    let stream = try #require(receiver.streams.values.first)
    #expect(call.sfu.counters.retransmitted > 5, "packets were lost and asked for")
    #expect(stream.missing.isEmpty, "\(stream.missing)")
    #expect(stream.packets.count > 400)
    #expect(stream.ordered.allSatisfy { !$0.isRetransmission && sender.tracks[0].sent[$0.serial] == $0.body })
    #expect(call.sfu.counters.drops(.notProtected) == 0, "no number is encrypted twice")
    #expect(receiver.refused == early, "the datagram is the same, with its tag")
  }

  /// A publisher without RTX answers a NACK with the same packet, and the server repeats packets that were lost after
  /// it.
  @Test(arguments: [true, false]) func aPublisherWithoutRTXIsRepairedOnBothWays(receiverHasRTX: Bool) throws {
    let call = SimulatedCall(seed: 4, .init(loss: 0.05, delay: 10...30))
    let sender = call.join([.camera])
    sender.configuration.tracks[0].formats = plain(sender.configuration.tracks[0].formats)
    sender.tracks = [TestPeer.track(sender.configuration.tracks[0], 1, 0)]
    call.configure(sender)
    let receiver = call.join([], audioSlots: 0, videoSlots: 1)
    if !receiverHasRTX {
      receiver.configuration.slots[0].formats = plain(receiver.configuration.slots[0].formats)
      receiver.streams = [receiver.configuration.slots[0].ssrc: ReceivedStream(receiver.configuration.slots[0])]
      call.configure(receiver)
    }
    try call.connect()
    call.run(milliseconds: 5000)
    sender.tracks[0].isSending = false
    call.network.conditions.loss = 0
    call.run(milliseconds: 1000)
    let stream = try #require(receiver.streams.values.first)
    #expect(call.sfu.counters.nacksSent > 5 && call.sfu.counters.retransmitted > 5)
    #expect(stream.missing.isEmpty, "\(stream.missing)")
    #expect(stream.packets.count > 400)
  }

  // MARK: padding

  /// A browser without RTX for a track, such as audio, probes its path with padding under the track's own numbers.
  /// Receivers get none of it and miss nothing.
  @Test(arguments: [TrackSource.microphone, .camera], workerCounts)
  func paddingOfASenderIsLeftOut(source: TrackSource, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([source])
    let receiver = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    let track = sender.tracks[0]
    let before = call.counters { $0.drops(.padding) }
    for _ in 0..<20 {
      call.run(milliseconds: 66)
      track.sequenceNumber &+= 1
      var packet = [UInt8](repeating: 0, count: 12)
      packet.withUnsafeMutableBytes {
        RTPHeader.write(
          marker: false, payloadType: track.description.formats[0].payloadType, sequenceNumber: track.sequenceNumber,
          timestamp: track.timestamp, ssrc: track.ssrc, into: $0)
      }
      packet[0] |= 0x20
      packet += [UInt8](repeating: 0, count: 223) + [224]
      sender.send(packet)
    }
    call.run(milliseconds: 500)
    #expect(call.counters { $0.drops(.padding) } >= before + 20)
    let stream = try #require(receiver.streams.values.first { !$0.packets.isEmpty })
    #expect(stream.missing.isEmpty, "consecutive numbers")
    #expect(stream.ordered.allSatisfy { track.sent[$0.serial] == $0.body }, "no empty packet")
    #expect(stream.packets.count > 50 && receiver.refused == 0)
  }

  // MARK: audio levels

  /// A call with more microphones than places, all with room noise except the last, which has no levels and sends
  /// packets of constant length.
  /// - Parameter silent: the number of a participant whose levels are always silence.
  private func crowded(_ count: Int, workers: Int, silent: Int? = nil) throws -> SimulatedCall {
    let call = SimulatedCall(workers: workers)
    for number in 1...count {
      let peer = call.join([.microphone], audioSlots: 8, videoSlots: 0)
      peer.tracks[0].payloadLength = 100
      peer.tracks[0].level = number == silent ? 127 : 70
      guard number == count else { continue }
      peer.configuration.extensions.audioLevel = 0
      call.configure(peer)
    }
    try call.connect()
    call.run(milliseconds: 500)
    return call
  }

  private func heard(by peer: TestPeer, _ number: Int) -> Int {
    peer.streams.values.reduce(0) { $0 + $1.serials.count { $0 >> 40 == number } }
  }

  private func speak(_ call: SimulatedCall, _ numbers: [Int], packets: Int) {
    for packet in 0..<packets {
      for (i, number) in numbers.enumerated() {
        call.peers[number - 1].tracks[0].level = (packet + 5 * i) % 23 < 18 ? 22 : 70
      }
      call.run(milliseconds: 20)
    }
    for number in numbers { call.peers[number - 1].tracks[0].level = 70 }
  }

  @Test(arguments: workerCounts) func aClientWithoutLevelsIsHeardInACrowdedCall(workers: Int) throws {
    let call = try crowded(12, workers: workers)
    let before = heard(by: call.peers[0], 12)
    call.run(milliseconds: 5000)
    #expect(heard(by: call.peers[0], 12) >= before + 225, "of 250 packets")
    #expect(call.speakers.last == [12], "nobody else is heard")
  }

  @Test(arguments: workerCounts) func speakersComeBeforeThosePresumedToSpeak(workers: Int) throws {
    let call = try crowded(12, workers: workers)
    call.run(milliseconds: 3000)
    speak(call, [2], packets: 100)
    #expect(call.speakers.last?.first == 2)
    // Nine want eight places: the nine take turns, and those with levels do not wait for the other's turn.
    speak(call, Array(1...8), packets: 100)
    let before = (1...8).map { heard(by: call.peers[9], $0) }
    speak(call, Array(1...8), packets: 250)
    for number in 1...8 { #expect(heard(by: call.peers[9], number) - before[number - 1] >= 125, "\(number)") }
  }

  /// All places are taken by clients without levels; somebody who speaks gets one at once.
  @Test func manyClientsWithoutLevelsKeepNobodyFromSpeaking() throws {
    let call = SimulatedCall()
    for number in 1...12 {
      let peer = call.join([.microphone], audioSlots: 8, videoSlots: 0)
      peer.tracks[0].payloadLength = 100
      peer.tracks[0].level = 70
      guard number > 2 else { continue }
      peer.configuration.extensions.audioLevel = 0
      call.configure(peer)
    }
    try call.connect()
    call.run(milliseconds: 3000)
    let before = heard(by: call.peers[1], 1)
    call.run(milliseconds: 10_000)
    #expect(heard(by: call.peers[1], 1) == before, "it has not spoken")
    // They take turns.
    for number in 3...12 { #expect(heard(by: call.peers[1], number) > 50, "\(number)") }
    speak(call, [1], packets: 100)
    #expect(heard(by: call.peers[1], 1) - before >= 85, "of 100 packets")
  }

  /// Some senders have the extension and never measure anything.
  @Test func levelsThatAreAlwaysSilenceAreNoLevelsWhereSizesDiffer() throws {
    let call = try crowded(12, workers: 1, silent: 11)
    let talker = call.peers[10]
    var random = SplitMix64(seed: 5)
    for packet in 0..<1500 {
      let speaks = packet % 200 < 100
      talker.tracks[0].payloadLength =
        speaks ? Int.random(in: 74...97, using: &random) : Int.random(in: 56...70, using: &random)
      call.run(milliseconds: 20)
    }
    let before = heard(by: call.peers[0], 11)
    talker.tracks[0].payloadLength = 88
    call.run(milliseconds: 2000)
    #expect(heard(by: call.peers[0], 11) >= before + 85)
  }
}

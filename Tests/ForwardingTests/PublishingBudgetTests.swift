import MediaModel
import RTP
import Testing
import Transport

@testable import Forwarding

/// Each packet of a publisher is multiplied by the receivers, so each track and each publisher has a budget.
struct PublishingBudgetTests {
  private static let limits = SFUConfiguration()

  /// The traffic of an honest client: the size of packets, their distance in milliseconds, and bursts.
  struct Traffic: CustomTestStringConvertible {
    var name: String
    var isAudio: Bool
    var length: Int
    /// Milliseconds between two bursts, and the packets in one.
    var interval: Int
    var burst: Int
    var testDescription: String { name }
  }

  @Test(arguments: [
    Traffic(name: "Opus, 20 ms, 128 kbit/s, stereo", isAudio: true, length: 360, interval: 20, burst: 1),
    Traffic(name: "Opus, 10 ms, 64 kbit/s, with FEC", isAudio: true, length: 130, interval: 10, burst: 1),
    Traffic(name: "music, 20 ms, 450 kbit/s", isAudio: true, length: 1_160, interval: 20, burst: 1),
    Traffic(name: "Opus in batches of 60 ms", isAudio: true, length: 360, interval: 60, burst: 3),
    Traffic(name: "simulcast 1080p, 6 Mbit/s in all", isAudio: false, length: 1_190, interval: 33, burst: 21),
    Traffic(name: "screen, 8 Mbit/s at 60 Hz", isAudio: false, length: 1_190, interval: 16, burst: 13),
  ])
  func honestTrafficFitsAlsoAfterAStall(_ traffic: Traffic) {
    let rate = traffic.isAudio ? Self.limits.audioTrack : Self.limits.videoTrack
    var budget = PublishingBudget(rate)
    var refused = 0
    var held = 0
    for millisecond in 0..<60_000 where millisecond % traffic.interval == 0 {
      // A key frame of 400 kB every 10 s; every 20 s the network holds everything back for 700 ms.
      let isStalled = millisecond % 20_000 > 19_300
      held += traffic.burst + (!traffic.isAudio && millisecond % 10_000 < traffic.interval ? 340 : 0)
      guard !isStalled else { continue }
      for _ in 0..<held where !budget.takes(traffic.length, now: instant(1_000 + UInt64(millisecond))) { refused += 1 }
      held = 0
    }
    #expect(refused == 0)
  }

  @Test(arguments: [40, 400, 1_190], [true, false]) func aFloodHasTheRateAndABurst(length: Int, isAudio: Bool) {
    let rate = isAudio ? Self.limits.audioTrack : Self.limits.videoTrack
    var budget = PublishingBudget(rate)
    var taken = 0
    for millisecond in 0..<10_000 as Range<UInt64> {
      for _ in 0..<20 where budget.takes(length, now: instant(1_000 + millisecond)) { taken += 1 }
    }
    let most = min(rate.packets * 11, rate.kilobits * 125 * 11 / length)
    // The bucket counts whole nanoseconds.
    #expect(taken <= most + most / 100 + 1 && taken > most / 100 * 95)
  }

  /// 10,000 packets a second from a microphone: receivers on both workers get 200, and other people get everything from
  /// each other.
  @Test(arguments: [1, 2]) func aFloodOfOneTrackIsNotMultiplied(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let flooder = call.join()
    let others = (0..<3).map { _ in call.join() }
    try call.connect()
    call.run(milliseconds: 1_000)
    flooder.tracks[0].isSending = false
    let before = flooder.tracks[0].packetCount
    let cameraBefore = flooder.tracks[1].packetCount
    let honestBefore = others[0].tracks.map(\.packetCount)
    let counts = others.map { $0.serials(of: flooder.tracks[0]).count }
    for _ in 0..<2_000 {
      for _ in 0..<10 { flood(flooder, flooder.tracks[0]) }
      call.run(milliseconds: 1)
    }
    call.run(milliseconds: 200)
    #expect(flooder.tracks[0].packetCount - before == 20_000)
    for (other, count) in zip(others, counts) {
      let received = other.serials(of: flooder.tracks[0]).count - count
      #expect(received <= 610 && received > 500, "\(received)")
      #expect(other.serials(of: flooder.tracks[1]).count >= Int(flooder.tracks[1].packetCount - cameraBefore) - 10)
    }
    for (track, count) in zip(others[0].tracks, honestBefore) {
      let sent = Int(track.packetCount - count)
      #expect(others[1].serials(of: track).count >= sent && others[2].serials(of: track).count >= sent)
    }
    #expect(call.counters { $0.drops(.tooMuch) } > 18_000)
    #expect(call.events.count { if case .tooMuch = $0 { true } else { false } } == 1)
  }

  private func flood(_ peer: TestPeer, _ track: TestTrack) {
    track.payloadLength = 30
    for packet in track.nextFrame(extensions: peer.configuration.extensions) { peer.send(packet) }
  }

  /// Retransmissions of packets that never came are new to the receivers.
  @Test func retransmissionsHaveNoBudgetOfTheirOwn() throws {
    let call = SimulatedCall()
    let flooder = call.join([.camera])
    let viewer = call.join([])
    viewer.sendsNacks = false
    try call.connect()
    call.run(milliseconds: 1_000)
    let track = flooder.tracks[0]
    (track.isSending, track.payloadLength, track.packetsPerFrame) = (false, 100, 1)
    let before = viewer.serials(of: track).count
    for _ in 0..<1_000 {
      for _ in 0..<8 {
        _ = track.nextFrame(extensions: flooder.configuration.extensions)
        if let copy = track.retransmission(of: track.sequenceNumber) { flooder.send(copy) }
      }
      call.run(milliseconds: 1)
    }
    call.run(milliseconds: 100)
    let received = viewer.serials(of: track).count - before
    #expect(received <= 6_400 && received > 1_000, "\(received)")
  }

  /// A participant with many tracks has the budget of one.
  @Test func theTracksOfOnePeerShareABudget() throws {
    let call = SimulatedCall()
    let flooder = call.join([.camera, .camera, .camera, .camera, .screen])
    let viewer = call.join([], audioSlots: 0, videoSlots: 5)
    viewer.sendsNacks = false
    try call.connect()
    call.run(milliseconds: 1_000)
    let before = call.sfu.counters.forwarded
    for track in flooder.tracks { (track.isSending, track.payloadLength, track.packetsPerFrame) = (false, 30, 3) }
    for _ in 0..<1_000 {
      for track in flooder.tracks { flood(flooder, track) }
      call.run(milliseconds: 1)
    }
    let forwarded = call.sfu.counters.forwarded - before
    #expect(forwarded <= 12_900 && forwarded > 9_000, "\(forwarded)")
  }

  /// Forged packets from a participant's address do not use its budget.
  @Test func aStrangerSpendsNobodysBudget() throws {
    let call = SimulatedCall()
    let (a, b) = (call.join(), call.join())
    try call.connect()
    call.run(milliseconds: 500)
    let sent = a.tracks.map(\.packetCount)
    let before = a.tracks.map { b.serials(of: $0).count }
    var forged = [UInt8](repeating: 7, count: 200)
    forged.replaceSubrange(0..<2, with: [0x80, 120])
    for i in 0..<2_000 {
      for j in 0..<10 {
        forged[2] = UInt8(truncatingIfNeeded: i)
        forged[3] = UInt8(j)
        call.receive(forged, from: a.address)
        forged[1] = 201
        call.receive(forged, from: a.address)
        forged[1] = 120
      }
      call.run(milliseconds: 1)
    }
    call.run(milliseconds: 50)
    #expect(call.sfu.counters.drops(.tooMuch) == 0)
    for (place, track) in a.tracks.enumerated() {
      #expect(b.serials(of: track).count - before[place] >= Int(track.packetCount - sent[place]) - 4)
    }
  }

  /// Compounds full of requests for key frames, reports and invalid packets.
  @Test func controlPacketsHaveABudget() throws {
    let call = SimulatedCall()
    let (a, b) = (call.join([.camera]), call.join([]))
    try call.connect()
    call.run(milliseconds: 500)
    let slot = try #require(b.configuration.slots.first { $0.kind == .video })
    let sdes: [UInt8] = [0x80, 202, 0, 0]
    let before = call.sfu.counters.keyFrameRequestsReceived
    for _ in 0..<1_000 {
      for _ in 0..<3 {
        b.sendRTCP { for _ in 0..<80 { $0.pictureLoss(sender: 1, media: slot.ssrc) } }
        b.sendRTCP(Array(repeatElement(sdes, count: 250).joined()))
      }
      call.run(milliseconds: 1)
    }
    #expect(call.sfu.counters.drops(.tooMuch) > 5_000)
    #expect(call.sfu.counters.keyFrameRequestsReceived - before < 20_000)
    #expect(a.tracks[0].keyFrameRequests.count < 20)
    #expect(b.serials(of: a.tracks[0]).count > 100)
  }

  /// A browser's reports on 200 ms of 25 videos and 8 voices with loss.
  @Test func honestReportsFit() {
    var budget = PublishingBudget(Self.limits.control)
    var refused = 0
    for millisecond in 0..<10_000 as Range<UInt64> {
      let now = instant(1_000 + millisecond)
      // Transport-wide feedback on 3,000 packets a second, requests for packets of each stream, key frames, receiver reports.
      if millisecond % 50 == 0, !budget.takes(450, now: now) { refused += 1 }
      if millisecond % 20 == 0 { for _ in 0..<12 where !budget.takes(40, now: now) { refused += 1 } }
      if millisecond % 500 == 0 { for _ in 0..<25 where !budget.takes(12, now: now) { refused += 1 } }
      if millisecond % 1_000 == 0, !budget.takes(900, now: now) { refused += 1 }
    }
    #expect(refused == 0)
  }
}

/// Datagrams that the kernel held while the process stood still.
struct StaleTests {
  @Test func oldMediaIsNotForwardedButKeepsThePath() throws {
    let call = SimulatedCall()
    let (a, b) = (call.join([.camera]), call.join([]))
    try call.connect()
    call.run(milliseconds: 500)
    a.tracks[0].isSending = false
    a.isChecking = false
    call.run(milliseconds: 100)
    let before = b.serials(of: a.tracks[0]).count
    let packets = (0..<10).flatMap { _ in a.tracks[0].nextFrame(extensions: a.configuration.extensions) }
    let datagrams = packets.compactMap(a.protect)
    // The server stood still for 9 s.
    for _ in 0..<90 { call.run(milliseconds: 100) }
    for datagram in datagrams { call.receive(datagram, from: a.address, age: 2_100_000_000) }
    call.run(milliseconds: 1_500)
    #expect(b.serials(of: a.tracks[0]).count == before)
    #expect(call.sfu.counters.drops(.stale) == UInt64(datagrams.count))
    #expect(!call.events.contains { if case .disconnected(a.configuration.peer, _) = $0 { true } else { false } })
    // The next ones pass.
    a.tracks[0].isSending = true
    call.run(milliseconds: 1_000)
    #expect(b.serials(of: a.tracks[0]).count > before + 50)
  }

  @Test func oldReportsAreNotUsedAndOldChecksAre() throws {
    let call = SimulatedCall()
    let (a, b) = (call.join([.camera]), call.join([]))
    try call.connect()
    call.run(milliseconds: 500)
    _ = a
    let slot = try #require(b.configuration.slots.first { $0.kind == .video })
    let before = call.sfu.counters.keyFrameRequestsReceived
    _ = b.takeOutput()
    b.sendRTCP { $0.pictureLoss(sender: 1, media: slot.ssrc) }
    for bytes in b.takeOutput() { call.receive(bytes, from: b.address, age: 3_000_000_000) }
    #expect(call.sfu.counters.keyFrameRequestsReceived == before)
    #expect(call.sfu.counters.drops(.stale) == 1)
    let out = call.sfu.counters.datagramsOut
    b.check()
    for bytes in b.takeOutput() { call.receive(bytes, from: b.address, age: 30_000_000_000) }
    #expect(call.sfu.counters.datagramsOut == out + 1, "the check is answered")
  }
}

/// Copies for a receiver that does not report what arrives.
struct CopyShareTests {
  @Test func copiesHaveAShareOfWhatTheSlotSends() throws {
    let call = SimulatedCall()
    let camera = call.join([.camera])
    let liar = call.join([])
    liar.sendsNacks = false
    try call.connect()
    call.run(milliseconds: 2_000)
    let slot = try #require(liar.configuration.slots.first { liar.streams[$0.ssrc]?.newest != nil })
    let before = (call.sfu.counters.retransmitted, camera.tracks[0].packetCount)
    for _ in 0..<5_000 {
      let newest = try #require(liar.streams[slot.ssrc]?.newest)
      let numbers = (0..<50).map { newest &- $0 }
      liar.sendRTCP { $0.nack(sender: 1, media: slot.ssrc, missing: numbers.span) }
      call.run(milliseconds: 1)
    }
    let copies = call.sfu.counters.retransmitted - before.0
    let sent = camera.tracks[0].packetCount - before.1
    // The burst is 20 packets or so.
    #expect(copies > 20 && Double(copies) < 0.33 * Double(sent) + 25, "\(copies) of \(sent)")
  }

  @Test func copiesOfHonestLossAreSent() throws {
    let call = SimulatedCall(seed: 4, NetworkConditions(loss: 0.1))
    let camera = call.join([.camera])
    let viewer = call.join([])
    try call.connect()
    call.run(milliseconds: 5_000)
    camera.tracks[0].isSending = false
    call.run(milliseconds: 1_000)
    let serials = viewer.serials(of: camera.tracks[0])
    #expect(serials.count == Int(serials.last! - serials.first!) + 1)
  }
}

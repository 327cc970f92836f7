import MediaModel
import RTP
import Testing

@testable import Forwarding

struct ForwardingTests {
  @Test(arguments: workerCounts) func everyoneGetsAllOfEveryone(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    for _ in 0..<3 { call.join() }
    try call.connect()
    call.run(milliseconds: 2000)
    for (peer, track) in call.pairs {
      let serials = peer.serials(of: track)
      #expect(serials.count > 90, "\(track.description.track)")
      try expectUnbroken(serials)
      expectUnchanged(peer, track)
    }
    #expect(call.peers.allSatisfy { $0.refused == 0 })
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64], workerCounts)
  func lossReorderingAndDuplicatesAreMended(seed: UInt64, workers: Int) throws {
    let call = SimulatedCall(seed: seed, workers: workers)
    for _ in 0..<4 { call.join() }
    try call.connect()
    call.network.conditions = NetworkConditions(loss: 0.05, duplication: 0.03, delay: 5...30)
    call.run(milliseconds: 4000)
    call.network.conditions = NetworkConditions()
    call.run(milliseconds: 1000)
    for (peer, track) in call.pairs where track.isVideo {
      let serials = peer.serials(of: track)
      #expect(serials.count > 300, "\(track.description.track)")
      try expectUnbroken(serials)
      expectUnchanged(peer, track)
    }
    #expect(call.counters(\.retransmitted) > 0)
    #expect(call.counters(\.nacksSent) > 0)
    #expect(call.peers.allSatisfy { $0.refused == 0 })
  }

  @Test(arguments: workerCounts) func unannouncedStreamsAreFoundByTheirMID(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    call.join(announcesSSRCs: false)
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    for track in call.peers[0].tracks { #expect(watcher.serials(of: track).count > 20) }
  }

  @Test(arguments: workerCounts) func payloadTypesAndExtensionsAreTheReceivers(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join()
    let watcher = call.join([])
    watcher.sendsReports = false
    sender.tracks[0].level = 33
    try call.connect()
    call.run(milliseconds: 500)
    let ids = watcher.configuration.extensions
    let used = watcher.streams.values.filter { !$0.packets.isEmpty }
    #expect(used.count == 2)
    for stream in used {
      for packet in stream.ordered {
        #expect(packet.payloadType == stream.slot.formats[0].payloadType)
        #expect(packet.extensions[ids.mid] == Array(stream.slot.mid.utf8))
        if stream.slot.kind == .audio { #expect(packet.extensions[ids.audioLevel] == [0x80 | 33]) }
        #expect(packet.extensions.count == (stream.slot.kind == .audio ? 2 : 1))
      }
    }
  }

  @Test(arguments: workerCounts) func theMIDIsLeftOutOnceTheReceiverReported(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    call.join([.camera])
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 200)
    let slot = try #require(watcher.configuration.slots.first { $0.kind == .video })
    watcher.sendRTCP { $0.receiverReport(ssrc: 1, reports: [report(of: slot.ssrc)].span) }
    call.run(milliseconds: 500)
    let packets = watcher.stream(slot.mid).ordered
    #expect(packets.first?.extensions.isEmpty == false)
    #expect(packets.last?.extensions.isEmpty == true)
  }

  @Test func packetsOfAFrameLeaveAsOneRunThoughALastOneIsLonger() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    sender.tracks[0].isSending = false
    call.run(milliseconds: 100)
    let outbox = Outbox(chunks: 4)
    for length in [833, 833, 834] {
      sender.tracks[0].payloadLength = length
      sender.tracks[0].packetsPerFrame = 1
      for packet in sender.tracks[0].nextFrame(extensions: sender.configuration.extensions) {
        var unmarked = packet
        unmarked[1] &= 0x7f
        var bytes = try #require(sender.protect(unmarked))
        bytes.withUnsafeMutableBytes { call.sfu.handle($0, from: sender.address, now: call.now, into: outbox) }
      }
    }
    #expect(outbox.runs.map(\.count) == [3])
  }

  /// Without gaps, and the first is a key frame's.
  private func expectUnbroken(_ serials: [UInt64]) throws {
    let first = try #require(serials.first)
    let last = try #require(serials.last)
    #expect(serials == Array(first...last))
  }

  private func expectUnchanged(_ peer: TestPeer, _ track: TestTrack) {
    let packets = peer.streams.values.flatMap(\.packets.values).filter { track.sent[$0.serial] != nil }
    #expect(!packets.isEmpty)
    for packet in packets { #expect(packet.body == track.sent[packet.serial]) }
  }
}

extension SimulatedCall {
  /// Each peer with each track of the others.
  var pairs: [(TestPeer, TestTrack)] {
    peers.flatMap { peer in peers.filter { $0 !== peer }.flatMap(\.tracks).map { (peer, $0) } }
  }
}

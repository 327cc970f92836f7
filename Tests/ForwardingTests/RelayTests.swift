import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// Calls with peers on several workers. Many other tests of forwarding run with one worker and with two.
struct RelayTests {
  @Test func packetsGoOnlyToWorkersThatShowTheirTrack() throws {
    let call = SimulatedCall(workers: 3)
    let camera = call.join([.camera])
    let viewer = call.join([], audioSlots: 0, videoSlots: 1)
    call.join([], audioSlots: 1, videoSlots: 0)
    try call.connect()
    call.run(milliseconds: 1000)
    let sent = camera.tracks[0].packetCount
    #expect(call.relays.packets > sent / 2 && call.relays.packets <= sent, "to one of the two others")
    call.wish(viewer, [camera.configuration.tracks[0].track: Wishes.Video(isPaused: true)])
    call.run(milliseconds: 300)
    let before = call.relays.packets
    call.run(milliseconds: 1000)
    #expect(call.relays.packets == before, "the viewer has paused it")
    call.wish(viewer, [:])
    call.run(milliseconds: 1000)
    #expect(call.relays.packets > before + 60)
    try expectUnbroken(viewer, since: camera.tracks[0].keyFrames.last!, camera.tracks[0])
  }

  @Test func eachPacketIsRelayedOnceToAWorkerHoweverManyViewersItHas() throws {
    let call = SimulatedCall(workers: 2)
    let camera = call.join([.camera], audioSlots: 0, videoSlots: 0)
    for _ in 0..<7 { call.join([], audioSlots: 0, videoSlots: 1) }
    try call.connect()
    call.run(milliseconds: 1000)
    #expect(call.relays.packets <= Int(camera.tracks[0].packetCount))
    #expect(call.sfus[0].counters.relayed == UInt64(call.relays.packets))
    for viewer in call.peers[1...] { #expect(viewer.serials(of: camera.tracks[0]).count > 60) }
  }

  @Test func aPeerThatHasGoneSendsNothingToOtherWorkers() throws {
    let call = SimulatedCall(workers: 2)
    let (a, b) = (call.join(), call.join())
    try call.connect()
    call.run(milliseconds: 500)
    call.command(.remove(b.configuration.peer))
    #expect(call.assignment(of: a).isEmpty)
    #expect(call.sfus[0].peersByID.count == 1 && call.sfus[1].peersByID.count == 1)
    // No peer of the call is left on the second worker.
    call.sfus[1].handle(.remove(a.configuration.peer), now: call.now, into: call.outbox)
    call.run(milliseconds: 100)
    #expect(call.sfus[1].calls.isEmpty)
    let before = call.relays.packets
    call.run(milliseconds: 1000)
    #expect(call.relays.packets == before)
  }

  /// The relay wish that ends the relaying was lost. A packet for an unknown peer is answered with another such wish.
  @Test func aWorkerThatWasForgottenIsToldToStop() throws {
    let call = SimulatedCall(workers: 2)
    let a = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    call.relays.isFull = { if case .wish = $0.body { true } else { false } }
    call.sfus[1].handle(.remove(a.configuration.peer), now: call.now, into: call.outbox)
    let before = call.relays.packets
    call.run(milliseconds: 200)
    #expect(call.relays.packets > before)
    call.relays.isFull = { _ in false }
    call.run(milliseconds: 200)
    let after = call.relays.packets
    call.run(milliseconds: 500)
    #expect(call.relays.packets == after)
    #expect(call.sfus[1].counters.drops(.unknownPeer) > 0)
  }

  /// The first wishes find no room, or arrive before the worker knows the peer.
  @Test func wishesAreRepeatedUntilTheyArrive() throws {
    let call = SimulatedCall(workers: 2)
    call.relays.isFull = { if case .wish = $0.body { true } else { false } }
    let camera = call.joinCamera()
    let viewer = call.joinViewer()
    try call.connect()
    call.run(milliseconds: 500)
    #expect(call.relays.packets == 0)
    #expect(call.counters { $0.drops(.relayFull) } > 3)
    call.relays.isFull = { _ in false }
    call.run(milliseconds: 1500)
    #expect(call.decode(viewer, from: [camera]).decoded.count > 10)
  }

  /// A burst of a second finds no room: the picture continues with a key frame, and no number is used twice.
  @Test(arguments: [1, 2, 3] as [UInt64]) func aFullWayIsAGapAndNoMore(seed: UInt64) throws {
    let call = SimulatedCall(seed: seed, workers: 2)
    let camera = call.joinCamera()
    let viewer = call.joinViewer()
    try call.connect()
    call.run(milliseconds: 2000)
    var random = SplitMix64(seed: seed)
    call.relays.isFull = { _ in Int.random(in: 0..<3, using: &random) == 0 }
    call.run(milliseconds: 1000)
    call.relays.isFull = { _ in true }
    call.run(milliseconds: 1000)
    call.relays.isFull = { _ in false }
    let back = call.now
    call.run(milliseconds: 3000)
    let received = call.decode(viewer, from: [camera])
    #expect(received.decoded.count { $0.at > back } > 60)
    #expect(call.counters { $0.drops(.relayFull) } > 30)
    #expect(call.counters { $0.drops(.notProtected) } == 0)
    #expect(call.peers.allSatisfy { $0.refused == 0 })
  }

  /// Only a peer's own worker may speak for it, and only about existing tracks.
  @Test func messagesFromTheWrongWorkerAreDropped() throws {
    let call = SimulatedCall(workers: 3)
    let a = call.join([.camera])
    let b = call.join([.camera])
    try call.connect()
    call.run(milliseconds: 500)
    let (peer, track) = (b.configuration.peer, b.configuration.tracks[0].track)
    let before = call.counters(\.forwarded)
    func give(
      _ body: RelayMessage.Body, of peer: PeerID, _ track: TrackID, rank: UInt8 = 0, from worker: Int, node: UInt32 = 4
    ) {
      var packet: [UInt8] = [0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0x10, 0]
      let message = RelayMessage(peer: peer, track: track, rank: rank, body: body)
      packet.withUnsafeMutableBytes {
        call.sfus[0].handle(
          message, $0, from: .worker(WorkerAddress(node: Incarnation(node), worker: worker)), now: call.now,
          into: call.outbox)
      }
    }
    let packet = RelayMessage.Body.packet(index: 70_000, isRetransmission: false, restarts: 0)
    give(packet, of: peer, track, from: 2)
    give(.report(ntp: 1, rtp: 1, at: 1, clockOffset: 1), of: peer, track, from: 2)
    give(packet, of: a.configuration.peer, a.configuration.tracks[0].track, from: 1)
    give(.wish(.wanted), of: peer, track, from: 1)
    give(.keyFrame, of: peer, track, from: 1)
    #expect(call.sfus[0].counters.drops(.unexpected) == 5)
    give(packet, of: peer, track, from: 1, node: 5)
    #expect(call.sfus[0].counters.drops(.unexpected) == 6, "a worker of the same number, of another server")
    give(packet, of: peer, track, rank: 1, from: 1)
    give(packet, of: peer, TrackID(participant: 9, index: 1), from: 1)
    give(.keyFrame, of: PeerID(rawValue: 77), track, from: 1)
    #expect(call.sfus[0].counters.drops(.unknownPeer) == 3)
    #expect(call.counters(\.forwarded) == before)
    #expect(a.tracks[0].keyFrameRequests.count <= 2)
  }

  /// Only the call's first worker reports who speaks, even if its peer has no microphone.
  @Test func theCallsFirstWorkerAloneTellsTheSpeakers() throws {
    let call = SimulatedCall(workers: 2)
    call.join([])
    call.join([.microphone])
    try call.connect()
    call.peers[1].tracks[0].level = 20
    call.run(milliseconds: 1000)
    #expect(call.speakers == [[2]])
    call.sfus[1].handle(
      .share(SimulatedCall.name, workers: [SimulatedCall.address(1)]), now: call.now, into: call.outbox)
    call.sfus[0].handle(
      .share(SimulatedCall.name, workers: [SimulatedCall.address(1)]), now: call.now, into: call.outbox)
    call.mute(call.peers[1], 0, true)
    call.run(milliseconds: 4000)
    #expect(call.speakers == [[2], []])
  }

  @Test func aTrackThatIsAddedAndOneThatEndsAreKnownToAll() throws {
    let call = SimulatedCall(workers: 2)
    let a = call.join([.camera])
    let b = call.join([], videoSlots: 2)
    try call.connect()
    a.configuration.tracks.append(TestPeer.trackDescription(1, 1, .screen))
    a.tracks.append(TestPeer.track(a.configuration.tracks[1], 1, 1))
    call.configure(a)
    call.run(milliseconds: 500)
    #expect(call.assignment(of: b).count == 2)
    #expect(b.serials(of: a.tracks[1]).count > 10)
    call.command(.removeTrack(a.configuration.peer, a.configuration.tracks[1].track))
    #expect(call.assignment(of: b).values.map { $0 } == [a.configuration.tracks[0].track])
    call.run(milliseconds: 100)
    let count = b.serials(of: a.tracks[1]).count
    call.run(milliseconds: 500)
    #expect(b.serials(of: a.tracks[1]).count == count)
    #expect(b.serials(of: a.tracks[0]).count > 20)
  }

  /// From the key frame with this serial on.
  private func expectUnbroken(_ viewer: TestPeer, since first: UInt64, _ track: TestTrack) throws {
    let serials = viewer.serials(of: track).filter { $0 >= first }
    #expect(serials.count > 60)
    #expect(serials == Array(first...(try #require(serials.last))))
  }
}

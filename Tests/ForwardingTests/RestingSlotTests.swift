import MediaModel
import RTP
import Testing

@testable import Forwarding

/// A slot whose m-line is inactive for a while keeps its SSRC, and the receiver keeps the SSRC's numbers: packets that begin again somewhere else would
/// be refused by SRTP on the server, or be unreadable at the receiver (RFC 3711 section 3.3.1). `SentNumbers` checks each step.
struct RestingSlotTests {
  private func rest(_ slots: Range<Int>, of viewer: TestPeer, in call: SimulatedCall) -> PeerConfiguration {
    let before = viewer.configuration
    viewer.configuration.slots.removeSubrange(slots)
    viewer.configuration.restingSlots = before.slots[slots].map(\.ssrc)
    call.configure(viewer)
    return before
  }

  private func resting(_ call: SimulatedCall, _ viewer: TestPeer) -> [UInt32] {
    call.sfu(of: viewer).peersByID[viewer.configuration.peer]?.restingSlots.map(\.description.ssrc) ?? []
  }

  @Test(arguments: [SlotFilling.ranked, .pinned], [TrackSource.camera, .microphone])
  func aSlotThatComesBackContinuesItsStream(filling: SlotFilling, source: TrackSource) throws {
    let call = SimulatedCall()
    call.filling = filling
    let publisher = call.join([source], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 1, videoSlots: 1)
    let slot = source == .camera ? 1 : 0
    try call.connect()
    call.pin(viewer, viewer.slot(slot, shows: publisher))
    call.network.conditions.loss = 0.02
    for _ in 0..<5 {
      call.run(milliseconds: 700)
      let packets = viewer.received(slot)
      let last = try #require(packets.ordered.last)
      let whole = rest(slot..<slot + 1, of: viewer, in: call)
      #expect(call.assignment(of: viewer).isEmpty)
      #expect(resting(call, viewer) == [packets.slot.ssrc])
      call.run(milliseconds: 1000)
      viewer.configuration = whole
      call.configure(viewer)
      #expect(resting(call, viewer) == [])
      let (count, newest) = (viewer.received(slot).packets.count, try #require(viewer.received(slot).newest))
      call.run(milliseconds: 700)
      let after = viewer.received(slot)
      #expect(after.packets.count > count + 25)
      #expect(Int(try #require(after.newest) &- newest) < 200, "the numbers continue")
      let elapsed = Int32(bitPattern: try #require(after.ordered.last).timestamp &- last.timestamp)
      let ticks = Int(publisher.tracks[0].description.formats[0].clockRate) / 1000 * 1700
      #expect(abs(Int(elapsed) - ticks) < ticks / 5, "and so do the times")
    }
    call.network.conditions.loss = 0
    call.run(milliseconds: 1000)
    if source == .camera { #expect(viewer.received(slot).missing.isEmpty, "copies continue, too") }
    #expect(call.counters { $0.drops(.notProtected) } == 0)
    #expect(viewer.refused == 0)
  }

  /// As in a room: the line of a publisher who left is used for the next one, whose picture ids and times have nothing to do with the first's.
  @Test(arguments: workerCounts) func aLineIsUsedAgainForTheNextPublisher(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let viewer = call.subscribe(videoSlots: 2)
    var publishers = [call.publish([.camera])]
    try call.connect()
    call.pin(viewer, viewer.slot(1, shows: publishers[0]))
    for _ in 0..<3 {
      call.run(milliseconds: 600)
      let gone = try #require(publishers.last)
      call.command(.remove(gone.configuration.peer))
      gone.isPresent = false
      let whole = rest(1..<2, of: viewer, in: call)
      call.run(milliseconds: 300)
      publishers.append(call.publish([.camera]))
      viewer.configuration = whole
      call.configure(viewer)
      call.pin(viewer, viewer.slot(1, shows: try #require(publishers.last)))
      call.run(milliseconds: 1500)
    }
    let packets = viewer.received(1).ordered
    #expect(viewer.received(1).missing.isEmpty)
    for publisher in publishers { #expect(viewer.serials(of: publisher.tracks[0]).count > 40) }
    for (a, b) in zip(packets, packets.dropFirst()) {
      let step = (try #require(b.pictureID) &- (try #require(a.pictureID))) & 0x7fff
      #expect(step <= 1)
      #expect(Int32(bitPattern: b.timestamp &- a.timestamp) >= 0)
    }
    #expect(call.counters { $0.drops(.notProtected) } == 0)
    #expect(viewer.refused == 0)
  }

  /// The receiver may have forgotten which m-line the SSRC belongs to.
  @Test func aSlotThatComesBackIsNamedAgain() throws {
    let call = SimulatedCall.room()
    let (publisher, viewer) = (call.publish([.microphone]), call.subscribe(audioSlots: 1))
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: publisher))
    call.run(milliseconds: 500)
    let (id, ssrc) = (viewer.configuration.extensions.mid, viewer.configuration.slots[0].ssrc)
    #expect(viewer.received(0).ordered.last?.extensions[id] != nil)
    viewer.sendRTCP { $0.receiverReport(ssrc: 1, reports: [report(of: ssrc)].span) }
    call.run(milliseconds: 300)
    #expect(viewer.received(0).ordered.last?.extensions[id] == nil, "it has reported on the SSRC")
    let whole = rest(0..<1, of: viewer, in: call)
    call.run(milliseconds: 100)
    viewer.configuration = whole
    call.configure(viewer)
    call.run(milliseconds: 300)
    #expect(viewer.received(0).ordered.last?.extensions[id] != nil)
  }

  /// A line that is rejected never comes back, so its numbers are forgotten.
  @Test func aSlotThatIsOverIsForgotten() throws {
    let call = SimulatedCall.room()
    let viewer = call.subscribe(videoSlots: 4)
    _ = rest(1..<3, of: viewer, in: call)
    #expect(resting(call, viewer).count == 2)
    viewer.configuration.restingSlots.removeFirst()
    call.configure(viewer)
    #expect(resting(call, viewer) == viewer.configuration.restingSlots)
    viewer.configuration.restingSlots = []
    call.configure(viewer)
    #expect(resting(call, viewer) == [])
    // A name that never was a slot is not kept either.
    viewer.configuration.restingSlots = [1, 2, 3]
    call.configure(viewer)
    #expect(resting(call, viewer) == [])
  }
}

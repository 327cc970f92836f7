import MediaModel
import RTP
import Testing

@testable import Forwarding

/// Slots that are pinned to tracks, as in rooms.
struct PinTests {
  /// From a key frame on, completely.
  private func expectUnbroken(_ stream: ReceivedStream, _ track: TestTrack, least: Int) throws {
    let serials = stream.serials.filter { $0 >> 32 == track.serial >> 32 }
    #expect(serials.count >= least)
    let first = try #require(serials.first)
    if track.isVideo { #expect(track.keyFrames.contains(first)) }
    #expect(serials == Array(first...(try #require(serials.last))))
    #expect(stream.missing.isEmpty)
  }

  private func slotEvents(_ call: SimulatedCall, _ peer: TestPeer) -> [SlotMap] {
    call.events.compactMap { if case .slots(peer.configuration.peer, let map) = $0 { map } else { nil } }
  }

  // MARK: filling

  @Test(arguments: workerCounts) func aPinnedTrackFlowsFromItsKeyFrameOn(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let (publisher, viewer) = (call.publish(), call.subscribe(audioSlots: 1))
    try call.connect()
    call.run(milliseconds: 500)
    #expect(viewer.serials(of: publisher.tracks[1]).isEmpty, "nothing is pinned")
    call.pin(viewer, viewer.slot(0, shows: publisher, 0), viewer.slot(1, shows: publisher, 1))
    call.run(milliseconds: 1000)
    try expectUnbroken(viewer.received(0), publisher.tracks[0], least: 45)
    try expectUnbroken(viewer.received(1), publisher.tracks[1], least: 80)
    #expect(publisher.tracks[1].keyFrameRequests.count == 1)
    #expect(call.assignment(of: viewer).count == 2 && slotEvents(call, viewer).count == 1)
    #expect(!call.events.contains { if case .need = $0 { true } else { false } })
    #expect(call.peers.allSatisfy { $0.refused == 0 })
  }

  /// The pin may be known before its publisher: `MediaCommand`s of two peers have no order between them.
  @Test(arguments: workerCounts) func aPinWaitsForItsTrack(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let viewer = call.subscribe()
    let track = TrackID(participant: 2, index: 1)
    call.pin(
      viewer,
      SlotPin(
        mid: viewer.configuration.slots[0].mid, source: TrackPin(peer: PeerID(rawValue: 2), track: track)))
    #expect(call.assignment(of: viewer).isEmpty)
    let publisher = call.publish([.camera])
    #expect(Array(call.assignment(of: viewer).values) == [track])
    try call.connect()
    call.run(milliseconds: 1000)
    try expectUnbroken(viewer.received(0), publisher.tracks[0], least: 80)
  }

  /// Switching a slot needs no offer, and the receiver sees one stream.
  @Test(arguments: workerCounts) func aPinThatMovesContinuesTheStream(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let publishers = [call.publish([.camera]), call.publish([.camera])]
    let viewer = call.subscribe()
    try call.connect()
    for round in 0..<4 {
      call.pin(viewer, viewer.slot(0, shows: publishers[round % 2]))
      let before = viewer.received(0).packets.count
      let other = viewer.serials(of: publishers[1 - round % 2].tracks[0]).count
      call.run(milliseconds: 600)
      #expect(viewer.received(0).packets.count > before + 40)
      #expect(viewer.serials(of: publishers[1 - round % 2].tracks[0]).count <= other + 3, "at most what was under way")
    }
    let packets = viewer.received(0).ordered
    #expect(viewer.received(0).missing.isEmpty)
    for (a, b) in zip(packets, packets.dropFirst()) {
      #expect(Int32(bitPattern: b.timestamp &- a.timestamp) >= 0)
      #expect(b.serial >> 32 == a.serial >> 32 || publishers.contains { $0.tracks[0].keyFrames.contains(b.serial) })
    }
    #expect(publishers.map { $0.tracks[0].keyFrameRequests.count } == [2, 2])
  }

  @Test(arguments: workerCounts) func aPausedPinSendsNothingAndResumesWithAKeyFrame(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let (publisher, viewer) = (call.publish(), call.subscribe(audioSlots: 1))
    try call.connect()
    func pin(isPaused: Bool) {
      call.pin(
        viewer, viewer.slot(0, shows: publisher, 0, isPaused: isPaused),
        viewer.slot(1, shows: publisher, 1, isPaused: isPaused))
    }
    pin(isPaused: false)
    call.run(milliseconds: 500)
    pin(isPaused: true)
    #expect(call.assignment(of: viewer).isEmpty)
    call.run(milliseconds: 100)
    let (before, requests) = (viewer.received(1).packets.count, publisher.tracks[1].keyFrameRequests.count)
    call.run(milliseconds: 500)
    #expect(viewer.received(1).packets.count == before)
    #expect(publisher.tracks[1].keyFrameRequests.count == requests)
    pin(isPaused: false)
    call.run(milliseconds: 500)
    #expect(viewer.received(1).packets.count > before + 30)
    #expect(viewer.received(0).missing.isEmpty && viewer.received(1).missing.isEmpty)
    #expect(publisher.tracks[1].keyFrameRequests.count == requests + 1)
  }

  /// The worker of the publisher sends nothing for a pin that is paused.
  @Test func aPausedVideoIsNotRelayed() throws {
    let call = SimulatedCall.room(workers: 2)
    let (publisher, viewer) = (call.publish([.camera]), call.subscribe())
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: publisher))
    call.run(milliseconds: 500)
    #expect(call.relays.packets > 40)
    call.pin(viewer, viewer.slot(0, shows: publisher, isPaused: true))
    call.run(milliseconds: 100)
    let before = call.relays.packets
    call.run(milliseconds: 500)
    #expect(call.relays.packets == before)
  }

  @Test(arguments: workerCounts) func aTrackThatEndsEmptiesItsSlotsUntilItIsBack(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let (publisher, viewer, other) = (call.publish(), call.subscribe(audioSlots: 1), call.subscribe())
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: publisher, 0), viewer.slot(1, shows: publisher, 1))
    call.pin(other, other.slot(0, shows: publisher, 1))
    call.run(milliseconds: 300)
    let (configuration, camera) = (publisher.configuration, publisher.configuration.tracks[1].track)
    call.command(.removeTrack(publisher.configuration.peer, camera))
    #expect(call.assignment(of: viewer).values.map(\.index) == [1])
    #expect(call.assignment(of: other).isEmpty)
    call.run(milliseconds: 100)
    let before = other.received(0).packets.count
    call.run(milliseconds: 300)
    #expect(other.received(0).packets.count == before)
    publisher.configuration = configuration
    call.configure(publisher)
    #expect(call.assignment(of: viewer).count == 2 && call.assignment(of: other).count == 1)
    call.run(milliseconds: 500)
    #expect(other.received(0).packets.count > before + 30)
    #expect(other.received(0).missing.isEmpty && viewer.received(1).missing.isEmpty)
    call.command(.remove(publisher.configuration.peer))
    publisher.isPresent = false
    #expect(call.assignment(of: viewer).isEmpty && call.assignment(of: other).isEmpty)
    call.command(.remove(viewer.configuration.peer))
    call.command(.remove(other.configuration.peer))
    #expect(call.sfu(of: viewer).peersByID[viewer.configuration.peer] == nil)
  }

  /// Its own muting is the publisher's; it keeps its slots.
  @Test func aMutedTrackKeepsItsSlot() throws {
    let call = SimulatedCall.room()
    let (publisher, viewer) = (call.publish([.camera]), call.subscribe())
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: publisher))
    call.run(milliseconds: 300)
    call.mute(publisher, 0, true)
    call.run(milliseconds: 300)
    let before = viewer.received(0).packets.count
    call.run(milliseconds: 300)
    #expect(viewer.received(0).packets.count == before && call.assignment(of: viewer).count == 1)
    call.mute(publisher, 0, false)
    call.run(milliseconds: 300)
    #expect(viewer.received(0).packets.count > before + 15)
  }

  @Test func aHeldPeerShowsNothingAndIsShownNowhere() throws {
    let call = SimulatedCall.room()
    let (publisher, viewer) = (call.publish([.camera]), call.subscribe())
    call.pin(viewer, viewer.slot(0, shows: publisher))
    for peer in [publisher, viewer] {
      #expect(call.assignment(of: viewer).count == 1)
      call.command(.hold(peer.configuration.peer, true))
      #expect(call.assignment(of: viewer).isEmpty)
      call.command(.hold(peer.configuration.peer, false))
    }
    #expect(call.assignment(of: viewer).count == 1)
  }

  @Test func aTrackCanBeInSeveralSlotsAndOnItsPublishersOwnScreen() throws {
    let call = SimulatedCall.room()
    let publisher = call.join([.camera], audioSlots: 0, videoSlots: 2)
    try call.connect()
    call.pin(publisher, publisher.slot(0, shows: publisher), publisher.slot(1, shows: publisher))
    call.run(milliseconds: 500)
    try expectUnbroken(publisher.received(0), publisher.tracks[0], least: 30)
    #expect(publisher.received(0).packets.count == publisher.received(1).packets.count)
  }

  @Test func aSlotThatLacksTheCodecSaysSo() throws {
    let call = SimulatedCall.room()
    let publisher = call.join([.camera], audioSlots: 0, videoSlots: 0, codec: "H264")
    let viewer = call.subscribe(audioSlots: 1)
    // Pins do not turn a microphone's slot into one for video either.
    call.pin(viewer, viewer.slot(0, shows: publisher), viewer.slot(1, shows: publisher))
    #expect(call.slotMap(of: viewer)?.slots == [])
    #expect(call.slotMap(of: viewer)?.unsupported == [publisher.configuration.tracks[0].track])
  }

  @Test func thirtyPublishersReachOneSubscriber() throws {
    let call = SimulatedCall.room()
    let viewer = call.subscribe(audioSlots: 30, videoSlots: 30)
    let publishers = (0..<30).map { _ in call.publish() }
    for publisher in publishers {
      publisher.tracks[1].packetsPerFrame = 1
      publisher.tracks[1].payloadLength = 100
      publisher.tracks[0].payloadLength = 80
    }
    let pins = publishers.enumerated().flatMap { place, publisher in
      [viewer.slot(place, shows: publisher, 0), viewer.slot(30 + place, shows: publisher, 1)]
    }
    call.command(.pin(viewer.configuration.peer, pins))
    try call.connect(seconds: 20)
    call.run(milliseconds: 1000)
    for (place, publisher) in publishers.enumerated() {
      try expectUnbroken(viewer.received(place), publisher.tracks[0], least: 40)
      try expectUnbroken(viewer.received(30 + place), publisher.tracks[1], least: 25)
    }
    #expect(viewer.refused == 0 && call.assignment(of: viewer).count == 60)
    call.command(.remove(publishers[7].configuration.peer))
    #expect(call.assignment(of: viewer).count == 58)
  }

  // MARK: isolation

  @Test(arguments: workerCounts) func nothingCrossesRooms(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let rooms = [CallID(unchecked: "room~1"), CallID(unchecked: "room~2")]
    let publishers = rooms.map { call.publish([.camera], of: $0) }
    let viewers = rooms.map { call.subscribe(videoSlots: 2, of: $0) }
    for viewer in viewers {
      call.pin(viewer, viewer.slot(0, shows: publishers[0]), viewer.slot(1, shows: publishers[1]))
    }
    #expect(viewers.map { call.assignment(of: $0).values.map(\.participant) } == [[1], [2]])
    try call.connect()
    call.run(milliseconds: 500)
    for (own, viewer) in viewers.enumerated() {
      #expect(viewer.received(own).packets.count > 30)
      #expect(viewer.received(1 - own).packets.isEmpty)
    }
    call.command(.remove(publishers[0].configuration.peer))
    #expect(viewers.map { call.assignment(of: $0).count } == [0, 1])
  }

  /// A call's tracks cannot be pinned, and no slot of a call shows a track of a room, even under one name.
  @Test func roomsAndCallsDoNotMix() throws {
    let call = SimulatedCall()
    let member = call.join([.camera], audioSlots: 0, videoSlots: 3)
    call.filling = .pinned
    let (publisher, viewer) = (call.publish([.camera]), call.subscribe(videoSlots: 2))
    call.pin(viewer, viewer.slot(0, shows: member), viewer.slot(1, shows: publisher))
    call.pin(member, member.slot(0, shows: publisher))
    try call.connect()
    call.run(milliseconds: 500)
    #expect(call.assignment(of: viewer).values.map(\.participant) == [publisher.configuration.participant])
    #expect(call.assignment(of: member).isEmpty && member.received(0).packets.isEmpty)
    // The filling of a peer does not change.
    member.configuration.filling = .pinned
    call.configure(member)
    call.pin(member, member.slot(0, shows: publisher))
    #expect(call.assignment(of: member).isEmpty)
  }

  @Test func pinnedPeersAreOutsideOfRankingVoicesAndNeeds() throws {
    let call = SimulatedCall()
    let members = (0..<3).map { _ in call.join(audioSlots: 1, videoSlots: 1) }
    let events = call.events.count
    call.filling = .pinned
    let subscribers = (0..<3).map { _ in call.subscribe(audioSlots: 8, videoSlots: 8) }
    call.pin(subscribers[0], subscribers[0].slot(0, shows: members[0]))
    let publisher = call.publish()
    call.run(milliseconds: 1500)
    let forwarded = try #require(call.sfu.calls[SimulatedCall.name])
    #expect(forwarded.ranking.audio.count == 3 && forwarded.ranking.video.count == 3)
    #expect(forwarded.countVoices() == 1)
    let strangers = Set((subscribers + [publisher]).map(\.configuration.peer))
    for case .need(let peer, _, _) in call.events[events...] { #expect(!strangers.contains(peer)) }
    let maps = call.events[events...].compactMap { if case .slots(let peer, _) = $0 { peer } else { nil } }
    #expect(maps.isEmpty, "nothing changed for the members")
  }

  @Test func everyoneWhoSpeaksInARoomIsTold() throws {
    let call = SimulatedCall.room()
    let publishers = (0..<3).map { _ in call.publish([.microphone]) }
    _ = call.subscribe(audioSlots: 1, videoSlots: 0)
    try call.connect()
    for publisher in publishers.prefix(2) { publisher.tracks[0].level = 20 }
    call.run(milliseconds: 1500)
    #expect(Set(call.speakers.last ?? []) == [1, 2])
  }

  // MARK: feedback

  @Test(arguments: [false, true], workerCounts)
  func lossesAreMendedAndKeyFramesComeOnRequest(isReported: Bool, workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let (publisher, viewer) = (call.publish([.camera]), call.subscribe())
    if isReported { viewer.reportArrivals() }
    call.configure(viewer)
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: publisher))
    call.run(milliseconds: 500)
    call.network.conditions.loss = 0.05
    call.run(milliseconds: 2000)
    call.network.conditions.loss = 0
    call.run(milliseconds: 1000)
    #expect(viewer.received(0).missing.isEmpty)
    #expect(call.counters(\.retransmitted) > 3)
    let before = publisher.tracks[0].keyFrameRequests.count
    viewer.sendRTCP { $0.pictureLoss(sender: 1, media: viewer.configuration.slots[0].ssrc) }
    call.run(milliseconds: 300)
    #expect(publisher.tracks[0].keyFrameRequests.count == before + 1)
    #expect((call.counters(\.feedbackReceived) > 20) == isReported)
    #expect(viewer.senderReports.contains { $0.report.ssrc == viewer.configuration.slots[0].ssrc })
  }

  // MARK: cost

  private func crowd(_ subscribers: UInt32) -> Crowd {
    let crowd = Crowd()
    crowd.join(1, [.microphone, .camera], audioSlots: 0, videoSlots: 0, filling: .pinned)
    for number in 2...subscribers + 1 {
      crowd.join(number, [], audioSlots: 1, videoSlots: 1, filling: .pinned)
      crowd.handle(pins(of: number, to: 1))
    }
    crowd.run(milliseconds: 1000)
    return crowd
  }

  private func pins(of number: UInt32, to publisher: UInt32) -> MediaCommand {
    let slots = TestPeer.configuration(number, [], 1, 1, false, true, "VP8").slots
    return .pin(
      PeerID(rawValue: UInt64(number)),
      slots.enumerated().map { place, slot in
        SlotPin(
          mid: slot.mid,
          source: TrackPin(
            peer: PeerID(rawValue: UInt64(publisher)),
            track: TrackID(participant: publisher, index: UInt8(place + 1))))
      })
  }

  @Test func aPinCostsTheSameInARoomOfAnySize() {
    let costs = [50, 400].map { (count: UInt32) in
      crowd(count).visits { $0.handle(pins(of: 7, to: 2)) }
    }
    #expect(costs[0] > 0 && costs[1] <= costs[0] + 8, "\(costs)")
  }

  @Test func aPublisherThatComesOrGoesIsLinear() {
    func costs(_ body: (Crowd) -> Void) -> [UInt64] { [50, 500].map { crowd($0).visits(body) } }
    for costs in [
      costs { $0.handle(.remove(PeerID(rawValue: 1))) },
      costs {
        $0.handle(.removeTrack(PeerID(rawValue: 1), TrackID(participant: 1, index: 2)))
        $0.join(1, [.microphone, .camera], audioSlots: 0, videoSlots: 0, filling: .pinned)
      },
    ] {
      #expect(costs[0] > 50 && costs[1] <= 15 * costs[0], "\(costs)")
    }
  }

  @Test func noPassFillsAWholeRoom() {
    let crowd = crowd(400)
    let before = crowd.sfu.counters.visits
    crowd.sfu.handle(.remove(PeerID(rawValue: 1)), now: crowd.now, into: crowd.outbox)
    // One for each subscriber that is noted, and two slots of 32 of them.
    #expect(crowd.sfu.counters.visits - before < 400 + 5 * 32)
    let told = { crowd.sfu.events.count { if case .slots = $0 { true } else { false } } }
    #expect(told() == SlotFiller.peersPerPass)
    while let due = crowd.sfu.nextTimeout, due <= crowd.now {
      crowd.sfu.handleTimeout(now: crowd.now, into: crowd.outbox)
    }
    #expect(told() == 400)
  }

  /// No work of an idle room depends on its size, but reports.
  @Test func aPeerThatIsGoneLeavesNothingBehind() {
    let crowd = crowd(20)
    for number in (1...21 as ClosedRange<UInt32>).reversed() { crowd.handle(.remove(PeerID(rawValue: UInt64(number)))) }
    #expect(crowd.sfu.calls.isEmpty && crowd.sfu.peersByID.isEmpty)
    crowd.join(1, [.microphone, .camera], audioSlots: 0, videoSlots: 0, filling: .pinned)
    #expect(crowd.visits { $0.handle(.remove(PeerID(rawValue: 1))) } < 10, "no subscriber is remembered")
  }
}

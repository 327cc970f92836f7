import MediaModel
import Testing

@testable import Forwarding

struct SlotTests {
  private func sources(_ call: SimulatedCall, _ peer: TestPeer) -> Set<String> {
    Set(call.assignment(of: peer).values.map(\.description))
  }

  @Test func everyTrackOfOthersHasASlotAndOwnOnesHaveNone() {
    let call = SimulatedCall()
    for _ in 0..<3 { call.join() }
    #expect(sources(call, call.peers[0]) == ["2.1", "2.2", "3.1", "3.2"])
    #expect(sources(call, call.peers[2]) == ["1.1", "1.2", "2.1", "2.2"])
  }

  @Test func theReplyHoldsTheMapAndOthersAreTold() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    let told = call.events.compactMap { event -> PeerID? in if case .slots(let id, _) = event { id } else { nil } }
    #expect(told == [a.configuration.peer])
    guard
      case .configured(b.configuration.peer, request: 2, let map) = call.events.last(where: {
        if case .configured = $0 { true } else { false }
      })
    else { throw Missing() }
    #expect(map.slots.count == 2 && map.revision == 1)
    let revision = try #require(call.slotMap(of: a)).revision
    call.command(.remove(b.configuration.peer))
    #expect(call.slotMap(of: a)?.slots.isEmpty == true)
    #expect(try #require(call.slotMap(of: a)).revision > revision)
  }

  @Test func changesThatComeTogetherFillTheSlotsOnce() throws {
    let call = SimulatedCall()
    let peers = (0..<5).map { _ in call.join() }
    let revision = try #require(call.slotMap(of: peers[0])).revision
    let before = call.sfu.events.count
    call.sfu.handle(peers.dropFirst().map { .remove($0.configuration.peer) }, now: call.now, into: call.outbox)
    let maps = call.sfu.events.dropFirst(before).compactMap { event in
      if case .slots(peers[0].configuration.peer, let map) = event { map } else { nil }
    }
    #expect(maps.map(\.revision) == [revision + 1])
    #expect(maps.last?.slots.isEmpty == true)
  }

  @Test func screensComeFirstWhenSlotsAreShort() {
    let call = SimulatedCall()
    let watcher = call.join([], audioSlots: 1, videoSlots: 1)
    call.join([.microphone, .camera])
    #expect(sources(call, watcher) == ["2.1", "2.2"])
    let sharer = call.join([.microphone, .camera, .screen, .screenAudio])
    #expect(sources(call, watcher) == ["3.3", "3.4"])
    call.command(.removeTrack(sharer.configuration.peer, TrackID(participant: 3, index: 3)))
    #expect(sources(call, watcher).contains("2.2"))
  }

  @Test func assignmentsStayInTheirSlots() {
    let call = SimulatedCall()
    let watcher = call.join([])
    for _ in 0..<3 { call.join([.camera]) }
    let before = call.assignment(of: watcher)
    call.command(.remove(call.peers[2].configuration.peer))
    call.join([.camera])
    let after = call.assignment(of: watcher)
    for (mid, track) in before where track.participant != 3 { #expect(after[mid] == track) }
    #expect(after.values.contains { $0.participant == 5 })
  }

  @Test func theLoudestTakeTheSlotsWithoutFlapping() throws {
    let call = SimulatedCall()
    let watcher = call.join([], audioSlots: 1, videoSlots: 1)
    let a = call.join()
    let b = call.join()
    try call.connect()
    a.tracks[0].level = 20
    call.run(milliseconds: 2500)
    #expect(sources(call, watcher) == ["2.1", "2.2"])
    a.tracks[0].level = 127
    b.tracks[0].level = 20
    call.run(milliseconds: 2500)
    #expect(sources(call, watcher) == ["3.1", "3.2"])
    let revision = try #require(call.slotMap(of: watcher)).revision
    // Both talk at once for 4 s, alternately a little louder.
    for i in 0..<20 {
      a.tracks[0].level = i % 2 == 0 ? 20 : 24
      b.tracks[0].level = i % 2 == 0 ? 24 : 20
      call.run(milliseconds: 200)
    }
    #expect(try #require(call.slotMap(of: watcher)).revision <= revision + 2)
  }

  @Test(arguments: [1, 2]) func slotsAreLookedAtAgainOnlyWhenTheyAreShort(slots: Int) throws {
    let call = SimulatedCall()
    for _ in 0..<3 { call.join(audioSlots: slots, videoSlots: slots) }
    let state = try #require(call.sfu.calls[SimulatedCall.name])
    // Two tracks of each kind from others; one's own tracks take no slot.
    #expect((state.allocationDue != nil) == (slots < 2))
  }

  @Test func mutedTracksGiveWayToOthers() {
    let call = SimulatedCall()
    let watcher = call.join([], audioSlots: 0, videoSlots: 1)
    let a = call.join([.camera])
    call.join([.camera])
    #expect(sources(call, watcher) == ["2.1"])
    call.mute(a, 0, true)
    call.run(milliseconds: 200)
    #expect(sources(call, watcher) == ["3.1"])
  }

  @Test func aTrackInAnotherCodecIsUnsupported() {
    let call = SimulatedCall()
    let watcher = call.join([])
    call.join([.camera, .microphone], codec: "H264")
    #expect(call.slotMap(of: watcher)?.unsupported == [TrackID(participant: 2, index: 1)])
    #expect(sources(call, watcher) == ["2.2"])
  }

  @Test func needIsSaidOnceASecondWithinTheLimits() {
    let call = SimulatedCall()
    let watcher = call.join([], audioSlots: 1, videoSlots: 1)
    for _ in 0..<12 {
      call.join()
      call.run(milliseconds: 100)
    }
    call.run(milliseconds: 2000)
    let needs = call.events.compactMap { event -> [Int]? in
      if case .need(watcher.configuration.peer, let audio, let video) = event { [audio, video] } else { nil }
    }
    #expect((2...4).contains(needs.count))
    #expect(needs.last == [8, 12])
  }

  private struct Missing: Error {}

  @Test func aTrackThatEndsWhileItsSlotIsHeldMakesRoomAtOnce() {
    let crowd = Crowd()
    crowd.join(1, [], audioSlots: 1, videoSlots: 1)
    // Enough that no slot depends on the last turns.
    for number in 2...60 as ClosedRange<UInt32> { crowd.join(number, [.camera], audioSlots: 0, videoSlots: 1) }
    #expect(crowd.peer(1).slotMap.slots.map(\.track.participant) == [2])
    for number in 3...60 as ClosedRange<UInt32> { crowd.peer(number).voice.spokeAt = crowd.now }
    crowd.call.isRankingStale = true
    crowd.sfu.allocateSlots(in: crowd.call, now: crowd.now, into: crowd.outbox)
    #expect(crowd.peer(1).slotMap.slots.map(\.track.participant) == [2], "held")
    crowd.handle(.removeTrack(PeerID(rawValue: 2), TrackID(participant: 2, index: 1)))
    #expect(crowd.peer(1).slotMap.slots.map(\.track.participant) == [3])
  }
}

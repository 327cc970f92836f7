import MediaModel
import Testing

@testable import Forwarding

struct LayerDemandTests {
  @Test func aLayerIsWantedAtOnceAndUnwantedAfterFiveSeconds() {
    var demand = LayerDemand(layers: 3)
    let first = demand.update([true, false, true], now: instant(1000))
    #expect(!first && demand.deadline == instant(6000))
    let early = demand.update([true, false, true], now: instant(5999))
    #expect(!early && demand.active == [true, true, true])
    let late = demand.update([true, false, true], now: instant(6000))
    #expect(late && demand.active == [true, false, true] && demand.deadline == nil)
    let again = demand.update([true, true, true], now: instant(6001))
    #expect(again && demand.active == [true, true, true])
  }

  @Test func aShortAbsenceTellsNothing() {
    var demand = LayerDemand(layers: 2)
    let changes = [(false, 0), (true, 4000), (false, 4100), (false, 9000), (true, 9050)].map { wanted, time in
      demand.update([true, wanted], now: instant(UInt64(time)))
    }
    #expect(changes == [false, false, false, false, false])
  }

  /// In a call, a viewer of only the lowest layer turns off the others, and a wish for more turns one on again.
  @Test(arguments: workerCounts) func theSenderIsToldWhichLayersAreWanted(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(), call.joinViewer())
    try call.connect()
    call.run(milliseconds: 6000)
    #expect(
      call.wanted(of: alice) == [[false, false, true], [true, false, true]]
        || call.wanted(of: alice) == [[true, false, true]])
    let track = alice.configuration.tracks[0].track
    call.wish(bob, [track: Wishes.Video(maxHeight: 180)])
    call.run(milliseconds: 4900)
    let before = call.wanted(of: alice).count
    call.run(milliseconds: 1500)
    #expect(call.wanted(of: alice).count == before + 1 && call.wanted(of: alice).last == [true, false, false])
    alice.tracks[1].isSending = false
    alice.tracks[2].isSending = false
    call.wish(bob, [track: Wishes.Video(maxHeight: 360)])
    call.run(milliseconds: 110)
    #expect(call.wanted(of: alice).last == [true, true, false])
    alice.tracks[1].isSending = true
    alice.tracks[1].wantsKeyFrame = true
    call.run(milliseconds: 500)
    let received = call.decode(bob, from: [alice])
    #expect(received.problems == [] && received.decoded.last?.frame.layer == 1)
    // No receiver has a slot for it any longer.
    call.wish(bob, [track: Wishes.Video(isPaused: true)])
    call.run(milliseconds: 6000)
    #expect(call.wanted(of: alice).last == [false, false, false])
    call.wish(bob, [track: Wishes.Video(maxHeight: 720)])
    call.run(milliseconds: 200)
    // The middle layer, which is still sent, is shown until the highest one arrives.
    #expect(call.wanted(of: alice).last == [true, true, true])
    alice.tracks[2].isSending = true
    alice.tracks[2].wantsKeyFrame = true
    call.run(milliseconds: 6000)
    #expect(call.wanted(of: alice).last == [true, false, true])
  }

  @Test(arguments: workerCounts) func aTrackOfOneLayerTellsNothing(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let alice = call.join([.camera], audioSlots: 0, videoSlots: 0)
    call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 7000)
    #expect(call.wanted(of: alice).isEmpty)
  }
}

extension SimulatedCall {
  /// The active layers sent to the peer, a list for each event.
  fileprivate func wanted(of peer: TestPeer) -> [[Bool]] {
    events.compactMap { event in
      if case .wanted(peer.configuration.peer, _, let layers) = event { layers.map(\.active) } else { nil }
    }
  }
}

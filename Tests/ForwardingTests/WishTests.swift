import MediaModel
import Testing

@testable import Forwarding

struct WishTests {
  private func track(_ participant: UInt32, _ index: UInt8 = 1) -> TrackID {
    TrackID(participant: participant, index: index)
  }

  private func wish(_ wishes: Wishes, of peer: TestPeer, in call: SimulatedCall) {
    call.command(.receive(peer.configuration.peer, wishes))
    call.run(milliseconds: 150)
  }

  private func seen(_ call: SimulatedCall, _ peer: TestPeer) -> Set<TrackID> { Set(call.assignment(of: peer).values) }

  @Test func lastNIsTheMostVideosThatAreShown() {
    let call = SimulatedCall()
    let watcher = call.join([])
    for _ in 0..<4 { call.join() }
    #expect(seen(call, watcher).count == 8)
    wish(Wishes(lastN: 1), of: watcher, in: call)
    #expect(seen(call, watcher).count { $0.index == 2 } == 1)
    #expect(seen(call, watcher).count { $0.index == 1 } == 4, "voices are not concerned")
    wish(Wishes(lastN: 0), of: watcher, in: call)
    #expect(seen(call, watcher).count { $0.index == 2 } == 0)
    wish(Wishes(), of: watcher, in: call)
    #expect(seen(call, watcher).count == 8)
  }

  @Test func aPausedVideoGivesItsSlotToAnother() {
    let call = SimulatedCall()
    let watcher = call.join([], videoSlots: 1)
    for _ in 0..<2 { call.join([.camera]) }
    #expect(seen(call, watcher) == [track(2)])
    wish(Wishes(videos: [track(2): .init(isPaused: true)]), of: watcher, in: call)
    #expect(seen(call, watcher) == [track(3)])
    wish(Wishes(videos: [track(2): .init(isPaused: true), track(3): .init(isPaused: true)]), of: watcher, in: call)
    #expect(seen(call, watcher).isEmpty)
  }

  @Test func aVideoThatIsNoLongerPausedBeginsWithAKeyFrame() throws {
    let call = SimulatedCall()
    let watcher = call.join([])
    let a = call.join([.camera])
    try call.connect()
    wish(Wishes(videos: [track(2): .init(isPaused: true)]), of: watcher, in: call)
    call.run(milliseconds: 500)
    let before = watcher.serials(of: a.tracks[0]).count
    call.run(milliseconds: 1000)
    #expect(watcher.serials(of: a.tracks[0]).count == before)
    wish(Wishes(), of: watcher, in: call)
    call.run(milliseconds: 500)
    #expect(watcher.serials(of: a.tracks[0]).contains(try #require(a.tracks[0].keyFrames.last)))
  }

  @Test func higherPrioritiesComeFirstAtOnceAndOthersMakeRoom() {
    let call = SimulatedCall()
    let watcher = call.join([], videoSlots: 2)
    for _ in 0..<5 { call.join([.camera]) }
    wish(Wishes(videos: [track(6): .init(priority: 2), track(5): .init(priority: 1)]), of: watcher, in: call)
    #expect(seen(call, watcher) == [track(5), track(6)])
    wish(Wishes(lastN: 1, videos: [track(4): .init(priority: 9), track(6): .init(priority: 2)]), of: watcher, in: call)
    #expect(seen(call, watcher) == [track(4)])
    wish(Wishes(videos: [track(2): .init(priority: -1), track(3): .init(priority: -1)]), of: watcher, in: call)
    #expect(seen(call, watcher).isDisjoint(with: [track(2), track(3)]))
  }

  @Test func screensStayAheadOfAnyPriority() {
    let call = SimulatedCall()
    let watcher = call.join([], videoSlots: 1)
    call.join([.camera])
    call.join([.screen])
    wish(Wishes(videos: [track(2): .init(priority: 100)]), of: watcher, in: call)
    #expect(seen(call, watcher) == [track(3)])
  }

  @Test func aMutedVideoStaysBehindOthersWhateverItsPriority() {
    let call = SimulatedCall()
    let watcher = call.join([], videoSlots: 1)
    let a = call.join([.camera])
    call.join([.camera])
    call.mute(a, 0, true)
    wish(Wishes(videos: [track(2): .init(priority: 100)]), of: watcher, in: call)
    #expect(seen(call, watcher) == [track(3)])
  }

  @Test func onlyWhatIsWishedIsNeeded() {
    let call = SimulatedCall()
    let watcher = call.join([], audioSlots: 8, videoSlots: 1)
    wish(Wishes(lastN: 3, videos: [track(2): .init(isPaused: true)]), of: watcher, in: call)
    for _ in 0..<3 { call.join([.camera]) }
    call.run(milliseconds: 2000)
    let needs = call.events.compactMap { event in
      if case .need(watcher.configuration.peer, _, let video) = event { video } else { nil }
    }
    #expect(needs.last == 2)
    for _ in 0..<4 { call.join([.camera]) }
    call.run(milliseconds: 2000)
    let most = call.events.compactMap { event in
      if case .need(watcher.configuration.peer, _, let video) = event { video } else { nil }
    }
    #expect(most.max() == 3)
  }

  @Test func numbersOutOfRangeAreHarmless() {
    let call = SimulatedCall()
    let watcher = call.join([])
    for _ in 0..<2 { call.join([.camera]) }
    wish(Wishes(lastN: .min), of: watcher, in: call)
    #expect(seen(call, watcher).isEmpty)
    wish(
      Wishes(lastN: .max, videos: [track(2): .init(priority: .min), track(99): .init(priority: .max)]), of: watcher,
      in: call)
    #expect(seen(call, watcher) == [track(2), track(3)])
  }
}

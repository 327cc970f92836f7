import MediaModel
import Octets
import Testing

@testable import Forwarding

/// The SFU's work besides packets grows no faster than the call. Work is counted, because times differ between
/// machines. Calls of 1,000 are only for release builds: with AddressSanitizer they take minutes.
struct LargeCallTests {
  /// Everybody has a microphone, the first three are speaking.
  private func crowd(_ count: UInt32) -> Crowd {
    let crowd = Crowd()
    for number in 1...count { crowd.join(number, [.microphone]) }
    for number in 1...3 as ClosedRange<UInt32> { crowd.speak(number, level: 20) }
    crowd.run(milliseconds: 3000)
    return crowd
  }

  /// Ten times the people may cause ten times the visits, times a logarithm.
  private func expectLinear(_ name: String, _ body: (Crowd, _ last: UInt32) -> Void) {
    let small = crowd(100).visits { body($0, 100) }
    let large = crowd(1000).visits { body($0, 1000) }
    print("large calls, \(name): \(small) visits with 100 peers, \(large) with 1,000")
    #expect(small > 0)
    #expect(large <= 15 * small, "\(name)")
  }

  @Test(.enabled(if: isRelease)) func aJoinIsLinear() {
    expectLinear("join") { crowd, last in crowd.join(last + 1, [.microphone]) }
  }

  @Test(.enabled(if: isRelease)) func aJoinBehindTheLastSlotAsksNobodyElseForItsSlots() {
    let crowd = crowd(1000)
    let slots = crowd.visits { $0.join(1001, [.microphone]) }
    // Each peer once, and its place in the ranking; eight slots each would be 8,000 more.
    #expect(slots < 6000)
    #expect(crowd.peer(1001).slotMap.slots.count == 8)
  }

  @Test(.enabled(if: isRelease)) func aLeaveIsLinear() {
    // The first speaker is in everybody's slots.
    expectLinear("leave") { crowd, _ in crowd.handle(.remove(PeerID(rawValue: 1))) }
  }

  /// Memory of a peer that has left is freed in the passes that would have filled its slots.
  @Test func noPassFreesAWholeCallThatEnds() {
    let crowd = crowd(300)
    let peers = (4...300 as ClosedRange<UInt32>).map { WeakPeer(crowd.peer($0)) }
    let call = crowd.call
    for peer in peers { peer.value.map(call.enqueue) }
    let removals = (4...300).map { MediaCommand.remove(PeerID(rawValue: $0)) }
    crowd.sfu.handle(removals, now: crowd.now, into: crowd.outbox)
    var left = peers.count { $0.value != nil }
    #expect(left > 100, "they wait for slots")
    while left > 0 {
      crowd.sfu.fillSlots(in: call, now: crowd.now, into: crowd.outbox)
      let now = peers.count { $0.value != nil }
      #expect((0...SlotFiller.peersPerPass).contains(left - now) && now < left)
      guard now < left else { break }
      left = now
    }
  }

  @Test(.enabled(if: isRelease)) func aChangeOfSpeakersIsLinear() {
    expectLinear("change of speakers") { crowd, last in
      crowd.speak(last, level: 5)
      crowd.run(milliseconds: 400)
      #expect(crowd.call.speakers.current.contains(last))
    }
  }

  @Test(.enabled(if: isRelease)) func aWholeCallOfSpeakersIsLinear() {
    expectLinear("everybody speaks") { crowd, last in
      for number in 1...last { crowd.speak(number, level: UInt8(40 - number % 30)) }
      crowd.run(milliseconds: 400)
      #expect(crowd.call.speakers.current.count == 8)
    }
  }

  @Test(.enabled(if: isRelease)) func anIdleSecondIsLinear() {
    expectLinear("idle second") { crowd, _ in
      // There are no checks here, so it ends before consent does.
      crowd.run(milliseconds: 1000)
    }
  }

  @Test(.enabled(if: isRelease)) func noPassLooksAtManyPeersInDetail() {
    let crowd = crowd(1000)
    crowd.speak(1000, level: 5)
    crowd.run(milliseconds: 3000)
    crowd.handle(.remove(PeerID(rawValue: 2)))
    crowd.run(milliseconds: 100)
    // The ranking visits 1,000 peers and sorts their tracks. In detail: 32 peers with 20 slots.
    #expect(crowd.largestPass < 10_000)
    #expect(crowd.sfu.peers.allSatisfy { $0.slotMap.slots.count == 8 })
    let hears = crowd.sfu.peers.filter { $0.slotMap.slots.contains { $0.track.participant == 1000 } }
    #expect(hears.count == 998, "all but the speaker")
  }

  /// A hundred people join a call of a thousand at once: no pass takes as long as all of their joins.
  @Test(.enabled(if: isRelease)) func aBurstOfJoinsIsCarriedOutInShortPasses() {
    let crowd = crowd(1000)
    let numbers = Array(1001...1100 as ClosedRange<UInt32>)
    let joins = numbers.map { number in
      MediaCommand.configure(
        TestPeer.configuration(number, [.microphone], 8, 12, false, true, "VP8"), request: UInt64(number))
    }
    let whole = crowd.visits { _ = $0.handle(joins, visits: .max) }
    let parts = self.crowd(1000)
    let passes = parts.handle(joins, visits: 5_000)
    print("large calls, 100 joins: \(whole) visits, \(parts.largestPass) at most in one of \(passes.count) passes")
    #expect(passes.allSatisfy { $0 >= 1 } && passes.reduce(0, +) == joins.count)
    #expect(parts.largestPass < 20_000 && whole > 5 * parts.largestPass)
    let configured = parts.events.compactMap { if case .configured(_, let request, _) = $0 { request } else { nil } }
    #expect(configured == Array(1...1100))
    // Everybody has the same slots as if they had joined one after another.
    parts.run(milliseconds: 1000)
    for number in numbers { #expect(parts.peer(number).slotMap.slots.count == 8) }
    #expect(parts.sfu.peers.map { $0.slotMap.slots } == crowd.sfu.peers.map { $0.slotMap.slots })
  }

  @Test(.enabled(if: isRelease)) func findingTheSpeakersLooksAtTheLoudAlone() {
    let crowd = crowd(1000)
    for number in 1...3 as ClosedRange<UInt32> { crowd.speak(number, level: 20) }
    crowd.run(milliseconds: 400)
    #expect(crowd.call.speakers.current.sorted() == [1, 2, 3])
    for number in 1...3 as ClosedRange<UInt32> { crowd.speak(number, level: 20) }
    let visits = crowd.visits { $0.sfu.slots.updateSpeakers(of: $0.call, now: $0.now) }
    #expect((1...40).contains(visits))
    crowd.handle(.remove(PeerID(rawValue: 1)))
    #expect(crowd.call.speakers.loud.map(\.configuration.participant).sorted() == [2, 3])
  }

  /// A pass skips only peers whose slots stay the same.
  @Test(arguments: 1...(isRelease ? 20 : 2) as ClosedRange<UInt64>) func everybodyHasTheSlotsThatAWholePassWouldGive(
    seed: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    let crowd = Crowd()
    var present: Set<UInt32> = []
    var next: UInt32 = 1
    for step in 0..<150 {
      let number = present.sorted().randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<10, using: &random) {
      case 0...2 where present.count < 40, _ where present.isEmpty:
        join(next, in: crowd, &random)
        present.insert(next)
        next += 1
      case 3 where present.count > 20:
        crowd.handle(.remove(PeerID(rawValue: UInt64(number))))
        present.remove(number)
      case 4: crowd.handle(.hold(PeerID(rawValue: UInt64(number)), Bool.random(using: &random)))
      case 5:
        if let track = crowd.peer(number).upTracks.randomElement(using: &random)?.track {
          crowd.handle(.removeTrack(PeerID(rawValue: UInt64(number)), track))
        }
      case 6: crowd.handle(.receive(PeerID(rawValue: UInt64(number)), wishes(present, &random)))
      case 7, 8: crowd.speak(number, level: UInt8.random(in: 5...60, using: &random))
      default:
        if let track = crowd.peer(number).upTracks.randomElement(using: &random)?.track {
          crowd.handle(.mute(PeerID(rawValue: UInt64(number)), track, Bool.random(using: &random)))
        }
      }
      // Mutes and wishes may wait for 100 ms.
      crowd.run(milliseconds: [100, 150, 700].randomElement(using: &random)!)
      let maps = crowd.sfu.peers.map(\.slotMap)
      for peer in crowd.sfu.peers { peer.needsSlots = true }
      crowd.sfu.allocateSlots(in: crowd.call, now: crowd.now, into: crowd.outbox)
      crowd.settle()
      #expect(crowd.sfu.peers.map(\.slotMap) == maps, "seed \(seed), step \(step)")
    }
  }

  private func join(_ number: UInt32, in crowd: Crowd, _ random: inout SplitMix64) {
    let sources: [[TrackSource]] = [[], [.microphone], [.microphone, .camera], [.microphone, .camera, .screen]]
    crowd.join(
      number, sources.randomElement(using: &random)!, audioSlots: Int.random(in: 0...4, using: &random),
      videoSlots: Int.random(in: 0...4, using: &random),
      codec: Int.random(in: 0..<5, using: &random) == 0 ? "H264" : "VP8")
  }

  private func wishes(_ present: Set<UInt32>, _ random: inout SplitMix64) -> Wishes {
    var wishes = Wishes(lastN: Int.random(in: 0...6, using: &random))
    for number in present.sorted().shuffled(using: &random).prefix(Int.random(in: 0...6, using: &random)) {
      wishes.videos[TrackID(participant: number, index: UInt8.random(in: 2...3, using: &random))] = .init(
        priority: Int.random(in: -1...2, using: &random), isPaused: Bool.random(using: &random))
    }
    return wishes
  }

  @Test(arguments: 1...(isRelease ? 20 : 2) as ClosedRange<UInt64>) func deadlinesComeInOrder(seed: UInt64) {
    final class Element: Scheduled {
      var place = -1
      var due: Instant?
    }
    var random = SplitMix64(seed: seed)
    var queue = DeadlineQueue<Element>()
    let elements = (0..<50).map { _ in Element() }
    for step in 0..<2000 {
      let element = elements.randomElement(using: &random)!
      element.due =
        Int.random(in: 0..<4, using: &random) == 0 ? nil : instant(UInt64.random(in: 0..<1000, using: &random))
      queue.set(element, to: element.due)
      #expect(queue.first == elements.compactMap(\.due).min(), "seed \(seed), step \(step)")
      guard Int.random(in: 0..<5, using: &random) == 0 else { continue }
      let now = instant(UInt64.random(in: 0..<300, using: &random))
      let first = elements.compactMap(\.due).min()
      let taken = queue.takeDue(now)
      #expect(taken?.due == first.flatMap { $0 <= now ? $0 : nil }, "seed \(seed), step \(step)")
      taken?.due = nil
    }
  }
}

private struct WeakPeer {
  weak var value: Peer?
  init(_ peer: Peer) { value = peer }
}

import MediaModel
import Octets
import RTP
import Recording
import Seeded
import Testing

@testable import Reels

/// The stored reel of a recorded participant (protocol section 13.7).
struct ReelTableTests {
  let stage = ReelStage()

  private func both(_ epoch: UInt32) -> [(epoch: UInt32, track: UInt8)] { [(epoch, 1), (epoch, 2)] }

  // MARK: consent

  @Test(arguments: ["VP8", "VP9"]) func framesAreStoredAsTheirSenderMadeThem(video: String) throws {
    let bob = TestSender(stage, video: video)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(3))
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    for track in [TestSender.microphone, TestSender.camera] {
      let stored = stage.frames(of: bob, track: track)
      let sent = bob.sent.filter { $0.track == track }
      #expect(stored.map(\.bytes) == sent.map(\.bytes) && !sent.isEmpty)
      #expect(stored.map(\.frame.isKeyFrame) == sent.map(\.isKeyFrame))
      #expect(stored.allSatisfy { $0.stream.epoch == 7 })
    }
    #expect(stage.gaps(of: bob).isEmpty)
    #expect(stage.contents(of: bob).map(\.ending) == [.closed(.complete)])
    #expect(stage.ended == [bob.name])
  }

  @Test func nothingIsStoredUnderAKeyToWhichNobodyAgreed() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.speak(7)
    bob.speak(6)
    // Another's key, another track's, and one of an epoch with the same low byte.
    bob.speak(7, as: 3)
    bob.speak(7, track: 2)
    bob.speak(7 + 256)
    bob.show(7, isKeyFrame: true)
    bob.speak(7)
    stage.advance(.seconds(12))
    let stored = stage.frames(of: bob).map(\.bytes)
    #expect(stored == [0, 4, 6].map { bob.sent[$0].bytes }, "the server knows the epoch by its low byte")
    #expect(stage.table.counts.drops[.notAdmitted] == 3)
    #expect(stage.gaps(of: bob).isEmpty, "nothing is missing of what was agreed to")
  }

  @Test func aFrameThatIsNoSFrameIsNotStored() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    var packet = [UInt8](repeating: 0, count: RTPHeader.fixedLength)
    packet.withUnsafeMutableBytes {
      RTPHeader.write(marker: true, payloadType: 111, sequenceNumber: 1, timestamp: 1, ssrc: 1, into: $0)
    }
    // A KID of 8 bytes with zeros in front.
    packet += [0xff, 0, 0, 0, 0, 0, 0, 0, 1]
    stage.table.receive(
      packet.span.bytes, index: 1, restarts: 0, of: TrackID(participant: 2, index: 1), rank: 0, peer: bob.peer,
      from: ReelStage.worker, now: stage.now)
    stage.advance(.seconds(11))
    #expect(stage.segments.isEmpty && stage.table.counts.drops[.unreadable] == 1)
  }

  @Test func framesWaitForTheirKey() {
    let bob = TestSender(stage)
    bob.keep([], awaited: both(7))
    bob.talk(7, for: .seconds(2))
    #expect(stage.segments.isEmpty)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(1), keyFrameFirst: false)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    for track in [TestSender.microphone, TestSender.camera] {
      #expect(stage.frames(of: bob, track: track).map(\.bytes) == bob.sent.filter { $0.track == track }.map(\.bytes))
    }
  }

  @Test func framesDoNotWaitForeverNorWithoutBound() {
    let bob = TestSender(stage)
    bob.keep([(6, 1)], awaited: [(7, 1)])
    bob.speak(6)
    bob.speak(7)
    stage.advance(.seconds(3))
    bob.keep([(6, 1), (7, 1)])
    bob.speak(7)
    stage.advance(.seconds(11))
    #expect(stage.frames(of: bob).map(\.bytes) == [bob.sent[0].bytes, bob.sent[2].bytes])
    #expect(stage.gaps(of: bob).map(\.reason) == [GapReason.noKey.rawValue])
    let carol = TestSender(stage, 3)
    carol.keep([], awaited: both(7))
    for _ in 0..<400 { carol.show(7, isKeyFrame: true) }
    carol.keep(both(7))
    stage.advance(.seconds(1))
    let bytes = stage.frames(of: carol).reduce(0) { $0 + $1.bytes.count }
    #expect(bytes <= ReelPeer.heldBytes && bytes > ReelPeer.heldBytes / 2)
  }

  @Test func aWithdrawalEndsTheSegmentAndStoresNothingMore() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(1))
    let before = stage.frames(of: bob).count
    bob.keep([])
    bob.talk(7, for: .seconds(1))
    #expect(stage.contents(of: bob).map(\.ending) == [.closed(.continued)])
    #expect(stage.marks(of: bob) == [8, 8], "the consent ended, of both tracks")
    #expect(stage.frames(of: bob).count >= before && stage.frames(of: bob).count <= bob.sent.count / 2 + 2)
    // It agrees again.
    bob.keep(both(9))
    bob.talk(9, for: .seconds(1))
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.contents(of: bob).map(\.ending) == [.closed(.continued), .closed(.complete)])
    #expect(stage.gaps(of: bob).isEmpty, "what a person withheld is not missing")
  }

  @Test func anErasedReelBeginsAnew() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.talk(7, for: .seconds(1))
    bob.keep([])
    stage.table.erase(bob.peer)
    stage.collect()
    #expect(stage.segments[bob.name] == nil)
    bob.keep([(8, 1)])
    bob.speak(8)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.frames(of: bob).map(\.stream.epoch) == [8])
  }

  @Test func aPeerThatIsNotRecordedIsRefused() {
    let bob = TestSender(stage)
    let packet = [UInt8](repeating: 0x80, count: 20)
    let isKnown = stage.table.receive(
      packet.span.bytes, index: 1, restarts: 0, of: TrackID(participant: 2, index: 1), rank: 0, peer: bob.peer,
      from: ReelStage.worker, now: stage.now)
    #expect(!isKnown)
  }

  // MARK: holes

  @Test func aHoleInSoundIsAGap() throws {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    for _ in 0..<5 {
      bob.speak(7)
      stage.advance(.milliseconds(20))
    }
    bob.arrives = { _ in false }
    for _ in 0..<3 {
      bob.speak(7)
      stage.advance(.milliseconds(20))
    }
    bob.arrives = { _ in true }
    for _ in 0..<5 {
      bob.speak(7)
      stage.advance(.milliseconds(20))
    }
    stage.advance(.seconds(12))
    #expect(stage.frames(of: bob).count == 10)
    let gap = try #require(stage.gaps(of: bob).first)
    #expect(gap.reason == GapReason.network.rawValue && gap.missing == 3 && stage.gaps(of: bob).count == 1)
    #expect(gap.range.upperBound - gap.range.lowerBound == 80, "from the last frame before it to the next one")
  }

  @Test func packetsThatComeLateAreNoGap() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.holdsBack = { $0 % 5 == 2 }
    bob.talk(7, for: .seconds(1))
    bob.release()
    bob.holdsBack = { _ in false }
    bob.talk(7, for: .milliseconds(200), keyFrameFirst: false)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.gaps(of: bob).isEmpty)
    for track in [TestSender.microphone, TestSender.camera] {
      #expect(stage.frames(of: bob, track: track).map(\.bytes) == bob.sent.filter { $0.track == track }.map(\.bytes))
    }
  }

  @Test func picturesGoOnFromTheNextKeyFrame() throws {
    let bob = TestSender(stage)
    bob.keep([(7, 2)])
    bob.show(7, isKeyFrame: true)
    bob.arrives = { _ in false }
    bob.show(7)
    bob.arrives = { _ in true }
    for _ in 0..<20 {
      stage.advance(.milliseconds(100))
      bob.show(7)
    }
    #expect(stage.takeWishes().contains { $0.kind == .keyFrame })
    bob.show(7, isKeyFrame: true)
    bob.show(7)
    stage.advance(.seconds(12))
    let stored = stage.frames(of: bob).map(\.bytes)
    #expect(stored == [bob.sent[0].bytes] + bob.sent.suffix(2).map(\.bytes))
    let gap = try #require(stage.gaps(of: bob).first)
    #expect(gap.missing == 3 && gap.range.upperBound - gap.range.lowerBound == 2_000)
    #expect(stage.table.counts.drops[.awaitingKeyFrame] == 20)
  }

  @Test func aKeyFrameIsAskedForEvery20Seconds() {
    let bob = TestSender(stage)
    bob.keep([(7, 2)])
    _ = stage.takeWishes()
    bob.talk(7, for: .seconds(19))
    #expect(!stage.takeWishes().contains { $0.kind == .keyFrame })
    bob.talk(7, for: .seconds(6), keyFrameFirst: false)
    let asked = stage.takeWishes().filter { $0.kind == .keyFrame }
    #expect((2...4).contains(asked.count), "every 2 s, until one comes")
    #expect(asked.allSatisfy { $0.track.index == 2 && $0.peer == bob.peer })
  }

  @Test func aStreamThatBeginsAgainIsNoHole() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.talk(7, for: .milliseconds(100))
    bob.restarts = 1
    bob.talk(7, for: .milliseconds(100))
    stage.advance(.seconds(12))
    #expect(stage.frames(of: bob).count == 10 && stage.gaps(of: bob).isEmpty)
  }

  // MARK: layers

  @Test func theHighestLayerWithinTheBoundIsStored() {
    var configuration = ReelTable.Configuration()
    configuration.cameraHeight = 360
    let stage = ReelStage(configuration)
    let bob = TestSender(stage, layers: 3)
    bob.keep([(7, 2)])
    stage.advance(.milliseconds(50))
    let wishes = stage.takeWishes().filter { $0.kind != .keyFrame && $0.track.index == 2 }
    #expect(Set(wishes.map { "\($0.rank) \($0.kind)" }) == ["0 packets", "1 wanted", "2 packets"])
    for picture in 0..<50 {
      for rank: UInt8 in 0..<3 { bob.show(7, isKeyFrame: picture == 0 || picture == 25, rank: rank, length: 200) }
      stage.advance(.milliseconds(40))
    }
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    let layers = stage.frames(of: bob).map(\.stream.layer)
    #expect(layers.contains(1) && !layers.contains(2), "720 lines are more than the bound")
    #expect(layers.last == 1)
  }

  @Test func anotherLayerIsGoneOverToAtItsKeyFrame() {
    let bob = TestSender(stage, layers: 3)
    bob.keep([(7, 2)])
    bob.talk(7, for: .seconds(1), rank: 0)
    // The middle layer begins without one.
    for picture in 0..<30 {
      bob.show(7, rank: 0, length: 200)
      bob.show(7, isKeyFrame: picture == 20, rank: 1, length: 200)
      stage.advance(.milliseconds(40))
    }
    #expect(stage.takeWishes().contains { $0.kind == .keyFrame && $0.rank == 1 })
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    let stored = stage.frames(of: bob)
    let first = stored.firstIndex { $0.stream.layer == 1 }
    #expect(first.map { stored[$0].frame.isKeyFrame } == true)
    #expect(stored.map(\.stream.layer) == stored.map(\.stream.layer).sorted(), "each picture once")
    #expect(stage.gaps(of: bob).isEmpty)
  }

  @Test func aLayerThatStopsIsReplaced() {
    let bob = TestSender(stage, layers: 3)
    bob.keep([(7, 2)])
    bob.talk(7, for: .seconds(1), rank: 1)
    stage.advance(.seconds(2))
    bob.talk(7, for: .seconds(1), rank: 0)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(Set(stage.frames(of: bob).map(\.stream.layer)) == [0, 1])
  }

  // MARK: segments, clocks, marks

  @Test func segmentsEndAfterTenSecondsOrFourMegabytes() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(21))
    let long = stage.contents(of: bob)
    #expect(long.map(\.ending) == [.closed(.continued), .closed(.continued), .open])
    let carol = TestSender(stage, 3)
    carol.keep(both(7))
    for _ in 0..<6 { carol.show(7, isKeyFrame: true, length: 1_000_000) }
    stage.table.end(carol.peer, now: stage.now)
    stage.collect()
    let segments = stage.segments[carol.name] ?? []
    #expect(segments.count == 2 && segments.allSatisfy { $0.bytes.count < SegmentHeader.maximumSegmentBytes })
    #expect(stage.frames(of: carol).count == 6)
  }

  @Test func recordsAreHandedOutWithin250Milliseconds() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.speak(7)
    stage.advance(.milliseconds(200))
    #expect(stage.segments[bob.name]?.first?.bytes.isEmpty == true)
    stage.advance(.milliseconds(100))
    #expect(stage.frames(of: bob).count == 1)
  }

  @Test func aFramesTimeIsTheSendersByItsReports() throws {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(1))
    // The sender's clock, mapped to the server's: 30 ms before what arrives.
    bob.report(1, skew: .milliseconds(-30))
    bob.report(2, skew: .milliseconds(-30))
    bob.talk(7, for: .seconds(1), keyFrameFirst: false)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    for track in [TestSender.microphone, TestSender.camera] {
      let stored = stage.frames(of: bob, track: track)
      for (frame, sent) in zip(stored, bob.sent.filter { $0.track == track }) {
        let captured = ReelStage.epochStart + Int64(sent.at.nanoseconds / 1_000) - 30_000
        #expect(abs(frame.frame.time - captured) <= 50)
      }
    }
  }

  @Test func withoutAReportTimesCountFromTheFirstPacket() throws {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.talk(7, for: .seconds(12))
    let stored = stage.frames(of: bob)
    #expect(stage.segments[bob.name]?.count == 2)
    for (frame, sent) in zip(stored, bob.sent.filter({ $0.track == 1 })) {
      #expect(abs(frame.frame.time - ReelStage.epochStart - Int64(sent.at.nanoseconds / 1_000)) <= 50)
    }
  }

  @Test func marksTellWhyNothingComes() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .milliseconds(200))
    let microphone = TrackID(participant: 2, index: 1)
    stage.table.mute(bob.peer, microphone, true, now: stage.now)
    stage.table.mute(bob.peer, microphone, true, now: stage.now)
    stage.advance(.milliseconds(500))
    stage.table.mute(bob.peer, microphone, false, now: stage.now)
    stage.table.hold(bob.peer, true, now: stage.now)
    stage.table.hold(bob.peer, false, now: stage.now)
    stage.table.removeTrack(bob.peer, TrackID(participant: 2, index: 2), now: stage.now)
    bob.speak(7)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.marks(of: bob) == [1, 2, 3, 4, 5])
    #expect(stage.gaps(of: bob).isEmpty)
  }

  @Test func codecsThatCannotBePutTogetherAreNotAskedFor() {
    let bob = TestSender(stage, video: "H264")
    bob.keep(both(7))
    stage.advance(.milliseconds(50))
    let wishes = stage.takeWishes()
    #expect(wishes.filter { $0.track.index == 2 }.allSatisfy { $0.kind == .nothing })
    #expect(wishes.contains { $0.track.index == 1 && $0.kind == .wanted })
  }

  @Test func wishesAreRepeatedAndEnd() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    stage.advance(.seconds(3))
    let wishes = stage.takeWishes().filter { $0.track.index == 1 }
    #expect(wishes.count > 3 && wishes.allSatisfy { $0.kind == .wanted && $0.worker == ReelStage.worker })
    bob.keep([])
    stage.advance(.milliseconds(50))
    #expect(stage.takeWishes().contains { $0.track.index == 1 && $0.kind == .nothing })
    bob.keep([(8, 1)])
    stage.advance(.milliseconds(50))
    _ = stage.takeWishes()
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.takeWishes().contains { $0.track.index == 1 && $0.kind == .nothing })
  }

  // MARK: too little time, too slow a disk

  @Test func aSlowDiskTakesPicturesFirstAndMemoryIsBounded() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(1))
    stage.isStuck = true
    for _ in 0..<100 {
      for _ in 0..<5 { bob.show(7, isKeyFrame: true, length: 30_000) }
      bob.speak(7)
      stage.advance(.milliseconds(20))
    }
    #expect(stage.largestBacklog <= ReelTable.Limits.reel * 5 / 4 + Reel.mostBytes)
    stage.advance(.milliseconds(300))
    let soundBefore = stage.frames(of: bob, track: 1).count
    bob.speak(7)
    stage.advance(.milliseconds(300))
    #expect(stage.frames(of: bob, track: 1).count == soundBefore + 1, "sound is stored longer")
    #expect((stage.table.counts.drops[.backlog] ?? 0) > 0)
    stage.isStuck = false
    stage.advance(.milliseconds(100))
    #expect(stage.table.backlog == 0)
    bob.show(7, isKeyFrame: true)
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.gaps(of: bob).map(\.reason) == [GapReason.disk.rawValue])
  }

  @Test func videoIsNotAskedOfAWorkerThatHasNoTimeForIt() {
    let bob = TestSender(stage)
    bob.keep(both(7))
    bob.talk(7, for: .seconds(1))
    _ = stage.takeWishes()
    stage.table.setVideoShare(0.5, of: ReelStage.worker, now: stage.now)
    stage.advance(.milliseconds(50))
    let wishes = stage.takeWishes()
    #expect(wishes.contains { $0.track.index == 2 && $0.kind == .nothing })
    #expect(!wishes.contains { $0.track.index == 1 && $0.kind == .nothing }, "sound goes on")
    stage.table.setVideoShare(1, of: ReelStage.worker, now: stage.now)
    stage.advance(.milliseconds(4_900))
    #expect(!stage.takeWishes().contains { $0.track.index == 2 && $0.kind == .wanted })
    stage.advance(.milliseconds(200))
    #expect(stage.takeWishes().contains { $0.track.index == 2 && $0.kind == .wanted })
    bob.talk(7, for: .milliseconds(100))
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    #expect(stage.gaps(of: bob).map(\.reason).contains(GapReason.serverLate.rawValue))
  }

  @Test func lossesOfTheRingAreTheServers() {
    let bob = TestSender(stage)
    bob.keep([(7, 1)])
    bob.speak(7)
    stage.table.lost(from: ReelStage.worker, now: stage.now)
    bob.arrives = { _ in false }
    bob.speak(7)
    bob.arrives = { _ in true }
    bob.speak(7)
    stage.advance(.milliseconds(1_600))
    bob.speak(7)
    stage.advance(.seconds(12))
    #expect(stage.gaps(of: bob).map(\.reason) == [GapReason.serverLate.rawValue])
  }

  // MARK: any network

  /// On any network, a stored frame is one that was sent, under a key that was exported, in order and once; and sound that is missing lies in a gap.
  @Test(arguments: 0..<40 as Range<UInt64>) func storesOnlySentFramesOnAnyNetwork(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let stage = ReelStage()
    let bob = TestSender(stage, layers: random.chance(50) ? 1 : 3, video: random.chance(50) ? "VP8" : "VP9", seed: seed)
    var exported: Set<RecordedPeer.Key> = []
    var epoch: UInt32 = 254
    let (loss, delay) = (random.below(15), random.below(30))
    var dice = SeededGenerator(seed: seed ^ 0xabc)
    bob.arrives = { _ in !dice.chance(loss) }
    var late = SeededGenerator(seed: seed ^ 0xdef)
    bob.holdsBack = { _ in late.chance(delay) }
    func set(awaits: Bool) {
      let keys = exported.filter { $0.epoch + 3 > epoch }.map { ($0.epoch, $0.track) }
      let both: [(UInt32, UInt8)] = [(epoch, 1), (epoch, 2)]
      let awaited = awaits ? both.filter { key in !keys.contains { $0 == key } } : []
      bob.keep(keys.map { (epoch: $0.0, track: $0.1) }, awaited: awaited.map { (epoch: $0.0, track: $0.1) })
    }
    set(awaits: true)
    for step in 0..<400 {
      if step % 80 == 40 {
        if random.chance(80) { exported.insert(RecordedPeer.Key(epoch: epoch, track: 1)) }
        if random.chance(60) { exported.insert(RecordedPeer.Key(epoch: epoch, track: 2)) }
        set(awaits: random.chance(70))
      }
      if step % 80 == 79 {
        epoch += 1
        set(awaits: random.chance(70))
      }
      bob.speak(epoch)
      for rank in 0..<UInt8(bob.configuration.tracks[1].rids.isEmpty ? 1 : 3) where random.chance(70) {
        bob.show(epoch, isKeyFrame: random.chance(8), rank: rank, length: 50 + random.below(2_500))
      }
      stage.advance(.milliseconds(20))
      if random.chance(20) { bob.release() }
    }
    bob.release()
    stage.advance(.seconds(4))
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    let stored = stage.frames(of: bob)
    let sent = Dictionary(bob.sent.enumerated().map { ($1.bytes, $0) }) { first, _ in first }
    var last: [String: Int] = [:]
    for frame in stored {
      guard let place = sent[frame.bytes] else {
        Issue.record("seed \(seed): a frame that nobody sent")
        return
      }
      let key = RecordedPeer.Key(epoch: frame.stream.epoch, track: frame.stream.n)
      #expect(exported.contains(key) && bob.sent[place].epoch == frame.stream.epoch, "seed \(seed)")
      let stream = "\(frame.stream.n) \(frame.stream.layer)"
      #expect(last[stream].map { $0 < place } ?? true, "seed \(seed): a frame comes twice, or out of order")
      last[stream] = place
    }
    #expect(stage.contents(of: bob).allSatisfy { if case .closed = $0.ending { true } else { false } }, "seed \(seed)")
    for contents in stage.contents(of: bob) {
      let first = contents.records.first { if case .frame = $0 { true } else { false } }
      #expect(first != nil || contents.records.count <= 1, "seed \(seed): a segment without a frame")
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>) func withoutLossEverythingIsStored(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let bob = TestSender(stage, seed: seed)
    bob.keep(both(7))
    bob.speak(7)
    bob.show(7, isKeyFrame: true)
    var late = SeededGenerator(seed: seed ^ 0xdef)
    bob.holdsBack = { _ in late.chance(30) }
    for _ in 0..<200 {
      bob.speak(7)
      if random.chance(50) { bob.show(7, length: random.below(4_000) + 20) }
      stage.advance(.milliseconds(20))
      if random.chance(30) { bob.release() }
    }
    bob.release()
    stage.table.end(bob.peer, now: stage.now)
    stage.collect()
    for track in [TestSender.microphone, TestSender.camera] {
      #expect(
        stage.frames(of: bob, track: track).map(\.bytes) == bob.sent.filter { $0.track == track }.map(\.bytes),
        "seed \(seed)")
    }
  }
}

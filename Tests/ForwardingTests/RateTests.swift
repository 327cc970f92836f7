import MediaModel
import Octets
import Paths
import RTP
import Testing

@testable import Forwarding

/// The estimate of a receiver's rate chooses its layers, over links with a rate, a queue and loss.
struct RateTests {
  /// With three workers, the viewers, the speaker and the camera each have one.
  @Test(arguments: isRelease ? [1, 2, 3] : [1] as [UInt64], isRelease ? [1, 3] : [3])
  func aNarrowPathGetsALowerLayerAndHarmsNobody(seed: UInt64, workers: Int) throws {
    let party = try Party(seed: seed, viewers: 2, workers: workers)
    try party.connect(400_000, loss: 0.05)
    party.call.run(milliseconds: 5_000)
    let start = party.call.now
    party.call.run(milliseconds: 15_000)
    party.checkThatTheFirstViewerAloneIsLimited(since: start, frames: 150)
    #expect(party.decoded(party.viewers[1]).longestGap(after: start) <= .milliseconds(150))
    #expect(party.audioPackets(party.viewers[0], since: start) > 650)
    let middle = party.call.now
    party.narrow(3_000_000)
    party.call.run(milliseconds: 8_000)
    let back = party.call.now
    party.call.run(milliseconds: 1_000)
    #expect(party.frames(party.viewers[0], since: back)[2] >= 28, "\(party.frames(party.viewers[0], since: middle))")
    #expect(party.call.counters(\.probes) > 2)
    #expect(party.call.counters(\.fillers) > 10)
  }

  /// Scenario 13 of the engineering note on rates: the others' layers, rates and gaps are within 2 % of a call without
  /// the poor path, and the highest layer has at most one more key frame in 10 s.
  @Test(.enabled(if: isRelease), arguments: [1, 2] as [UInt64])
  func onePoorPathOfEightCostsTheOthersNothing(seed: UInt64) throws {
    func run(isPoor: Bool) throws -> (frames: [Int], octets: [Int], gap: Duration, keyFrames: Int) {
      let party = try Party(seed: seed, viewers: 8)
      try party.connect(isPoor ? 400_000 : nil, loss: isPoor ? 0.05 : 0)
      party.call.run(milliseconds: 5_000)
      let start = party.call.now
      party.call.run(milliseconds: 20_000)
      let others = party.viewers.dropFirst()
      #expect(party.isLimited(party.viewers[0]) == isPoor)
      return (
        others.map { party.frames($0, since: start)[2] },
        others.map { party.video($0).packets.values.filter { $0.arrival >= start }.reduce(0) { $0 + $1.body.count } },
        others.map { party.decoded($0).longestGap(after: start) }.max() ?? .zero,
        party.camera.tracks[2].keyFrameRequests.count { $0 >= start }
      )
    }
    let (alone, beside) = (try run(isPoor: false), try run(isPoor: true))
    for (before, after) in zip(alone.frames, beside.frames) { #expect(after * 100 >= before * 98, "\(beside)") }
    for (before, after) in zip(alone.octets, beside.octets) {
      #expect(after * 100 >= before * 98 && after * 100 <= before * 102, "\(alone) \(beside)")
    }
    #expect(beside.gap <= alone.gap + .milliseconds(10))
    #expect(beside.keyFrames <= alone.keyFrames + 2, "in 20 s: \(beside.keyFrames), \(alone.keyFrames)")
  }

  /// The path carries more than the initial estimate and less than the camera sends, so a queue builds up before any
  /// rate is known.
  @Test(arguments: [800_000, 1_000_000]) func aPathIsTooNarrowFromTheFirstSecond(rate: Int) throws {
    let party = try Party()
    try party.connect(rate)
    party.call.run(milliseconds: 4_000)
    #expect(party.isLimited(party.viewers[0]) == true)
    let start = party.call.now
    party.call.run(milliseconds: 10_000)
    let frames = party.frames(party.viewers[0], since: start)
    // The high layer at half of its frames costs 650 kbit/s, the middle one in full 490.
    #expect(frames.reduce(0, +) >= 140, "\(frames)")
    #expect(party.decoded(party.viewers[0]).longestGap(after: start) <= .milliseconds(500))
    #expect(party.audioPackets(party.viewers[0], since: start) >= 490)
  }

  /// On fast paths the camera omits the middle layer, because no receiver wants it. A receiver whose path has room for
  /// it but not for the highest layer still gets it, and the camera omits it again when the path is fast.
  @Test func aNarrowPathGetsALayerThatNobodyElseWants() throws {
    let party = try Party(viewers: 2)
    try party.connect(5_000_000)
    party.runAsWanted(milliseconds: 7_000)
    #expect(party.camera.tracks.map(\.isSending) == [true, false, true])
    party.narrow(650_000)
    party.runAsWanted(milliseconds: 8_000)
    #expect(party.camera.tracks.map(\.isSending) == [true, true, true])
    let start = party.call.now
    party.runAsWanted(milliseconds: 10_000)
    let frames = party.frames(party.viewers[0], since: start)
    // At least half of its frames at all times.
    #expect(frames[1] >= 145 && frames[0] < 15, "\(frames)")
    #expect(party.frames(party.viewers[1], since: start)[2] >= 295)
    party.narrow(5_000_000)
    party.runAsWanted(milliseconds: 30_000)
    #expect(party.isLimited(party.viewers[0]) == false)
    #expect(party.camera.tracks.map(\.isSending) == [true, false, true])
  }

  /// On a fast enough path, the estimate reduces nothing.
  @Test func aWidePathIsNotTouched() throws {
    let party = try Party(viewers: 1)
    try party.connect(10_000_000)
    party.call.run(milliseconds: 1_000)
    let start = party.call.now
    party.call.run(milliseconds: 10_000)
    #expect(party.frames(party.viewers[0], since: start)[2] >= 300)
    #expect(party.call.sfu.counters.probes == 0)
    #expect(party.call.sfu.counters.layerSwitches <= 2)
  }

  /// Audio always continues, the screen comes before the camera, and the camera pauses and comes back with a key frame
  /// at its rate.
  @Test func aTinyPathKeepsAudioAndTheScreen() throws {
    let party = try Party(screen: true)
    try party.connect(3_000_000)
    party.call.run(milliseconds: 5_000)
    party.narrow(140_000)
    party.call.run(milliseconds: 6_000)
    let start = party.call.now
    party.call.run(milliseconds: 10_000)
    #expect(party.audioPackets(party.viewers[0], since: start) > 480)
    let slots = party.call.assignment(of: party.viewers[0])
    let places = party.viewers[0].configuration.slots.indices.filter {
      slots[party.viewers[0].configuration.slots[$0].mid] == party.camera.configuration.tracks[0].track
    }
    let place = try #require(places.first) - 1
    func count(_ place: Int, since start: Instant) -> Int {
      party.video(party.viewers[0], place).packets.values.count { $0.arrival >= start }
    }
    // Audio and the screen take 100 kbit/s: there is room for them most of the time, but never for the camera in
    // addition.
    let screen = count(1 - place, since: start)
    #expect(screen > 130)
    #expect(count(place, since: start) * 3 < screen)
    #expect(party.call.sfu.counters.withheld > 0)
    party.narrow(3_000_000)
    let back = party.call.now
    party.call.run(milliseconds: 8_000)
    let received = party.call.decode(party.video(party.viewers[0], place), of: party.viewers[0], from: [party.camera])
    let frames = received.decoded.filter { $0.at >= back }
    #expect(frames.first?.frame.isKeyFrame == true)
    #expect(frames.last?.frame.layer == 2)
    #expect(frames.count > 90)
    for (a, b) in zip(frames, frames.dropFirst(12)) { #expect(a.at.duration(to: b.at) > .milliseconds(150)) }
  }

  /// The slot reports that a video is in lower quality or withheld, for as long as that lasts, and at most once a
  /// second.
  @Test(.enabled(if: isRelease)) func aReceiverIsToldThatItsPictureIsLimited() throws {
    let party = try Party(viewers: 2)
    func pictures(_ viewer: TestPeer) -> [LimitedPicture?] {
      party.call.events.compactMap { event in
        guard case .slots(viewer.configuration.peer, let map) = event else { return nil }
        return map.slots.first { $0.track.participant == party.camera.configuration.participant }?.picture
      }
    }
    func current(_ viewer: TestPeer) -> LimitedPicture? {
      party.call.slotMap(of: viewer)?.slots.first { $0.source == .camera }?.picture
    }
    try party.connect(3_000_000)
    party.call.run(milliseconds: 5_000)
    #expect(current(party.viewers[0]) == nil)
    party.narrow(400_000)
    party.call.run(milliseconds: 8_000)
    #expect(current(party.viewers[0]) == .lower)
    party.narrow(60_000)
    party.call.run(milliseconds: 12_000)
    #expect(current(party.viewers[0]) == .paused)
    party.narrow(5_000_000)
    party.call.run(milliseconds: 25_000)
    #expect(current(party.viewers[0]) == nil)
    let told = pictures(party.viewers[0])
    #expect(told.contains(.lower) && told.contains(.paused) && told.count <= 45, "\(told)")
    #expect(pictures(party.viewers[1]).allSatisfy { $0 == nil })
  }

  /// A client that estimates its rate itself (REMB) and reports no packets.
  @Test(.enabled(if: isRelease), arguments: [1, 2] as [UInt64])
  func aReceiversOwnEstimateChoosesItsLayers(seed: UInt64) throws {
    let party = try Party(seed: seed, viewers: 2, estimates: true)
    try party.connect(400_000)
    party.call.run(milliseconds: 8_000)
    let start = party.call.now
    party.call.run(milliseconds: 15_000)
    // The middle layer at half of its frames costs 245 kbit/s, in full 490.
    party.checkThatTheFirstViewerAloneIsLimited(since: start, frames: 200)
    #expect(party.frames(party.viewers[0], since: start)[2] == 0)
    party.narrow(3_000_000)
    party.call.run(milliseconds: 20_000)
    let back = party.call.now
    party.call.run(milliseconds: 1_000)
    #expect(party.frames(party.viewers[0], since: back)[2] >= 28)
  }

  /// It reports, but its slots have no RTX that could carry probes: the next layer is tried instead.
  @Test(.enabled(if: isRelease), arguments: [1, 2] as [UInt64])
  func aReceiverWithoutRetransmissionsGetsTheLayersOfItsPath(seed: UInt64) throws {
    let party = try Party(seed: seed, viewers: 2)
    for viewer in party.viewers {
      for i in viewer.configuration.slots.indices {
        for j in viewer.configuration.slots[i].formats.indices {
          viewer.configuration.slots[i].formats[j].rtxPayloadType = nil
        }
      }
      party.call.configure(viewer)
    }
    try party.connect(400_000)
    party.call.run(milliseconds: 5_000)
    let start = party.call.now
    party.call.run(milliseconds: 15_000)
    party.checkThatTheFirstViewerAloneIsLimited(since: start, frames: 150)
    party.narrow(3_000_000)
    party.call.run(milliseconds: 15_000)
    let back = party.call.now
    party.call.run(milliseconds: 1_000)
    #expect(party.frames(party.viewers[0], since: back)[2] >= 28)
    #expect(party.call.sfu.counters.probes == 0 && party.call.sfu.counters.fillers == 0)
  }

  @Test func aReceiverWithoutReportsIsAsBefore() throws {
    for isSilent in [true, false] {
      let party = try Party(reports: isSilent)
      party.viewers[0].feedback.isSilent = isSilent
      try party.connect(2_000_000)
      party.call.run(milliseconds: 1_000)
      let start = party.call.now
      party.call.run(milliseconds: 6_000)
      #expect(party.frames(party.viewers[0], since: start)[2] >= 175)
      #expect(party.call.sfu.counters.probes == 0)
    }
  }

  /// Without reports nothing is known about the path, so the rate drops; it recovers with them.
  @Test func silenceLowersTheRate() throws {
    let party = try Party()
    try party.connect(5_000_000)
    party.call.run(milliseconds: 3_000)
    party.viewers[0].feedback.isSilent = true
    party.call.run(milliseconds: 5_000)
    let silent = party.call.now
    party.call.run(milliseconds: 2_000)
    #expect(party.frames(party.viewers[0], since: silent)[2] == 0)
    #expect(party.audioPackets(party.viewers[0], since: silent) >= 95)
    party.viewers[0].feedback.isSilent = false
    party.call.run(milliseconds: 8_000)
    let back = party.call.now
    party.call.run(milliseconds: 1_000)
    #expect(party.frames(party.viewers[0], since: back)[2] >= 28)
  }

  /// A receiver that keeps requesting everything gets repetitions only for a share of its rate, and the other receiver
  /// gets nothing less.
  @Test func retransmissionsAreBounded() throws {
    let party = try Party(viewers: 2)
    try party.connect(2_000_000)
    party.call.run(milliseconds: 2_000)
    let (before, start) = (party.call.sfu.counters.retransmitted, party.call.now)
    let slot = party.viewers[0].configuration.slots[1]
    for _ in 0..<1_000 {
      let newest = party.video(party.viewers[0]).packets.keys.max() ?? 0
      let numbers = (0..<100).map { UInt16(truncatingIfNeeded: newest &- $0) }
      party.viewers[0].sendRTCP { $0.nack(sender: 1, media: slot.ssrc, missing: numbers.span) }
      party.call.run(milliseconds: 5)
    }
    // 30 % of 2 Mbit/s are 110 packets a second.
    let copies = party.call.sfu.counters.retransmitted - before
    #expect(copies > 50)
    #expect(copies < 700, "\(copies)")
    #expect(party.frames(party.viewers[1], since: start)[2] >= 148)
  }

  /// Reports of unsent numbers and absurd times can only lower the liar's own rate.
  @Test(arguments: [1, 2] as [UInt64]) func aLiarHarmsNobodyElse(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let party = try Party(viewers: 2)
    try party.connect()
    party.call.run(milliseconds: 2_000)
    let start = party.call.now
    let sent = party.call.sfu.counters.bytesOut
    party.viewers[0].feedback.isSilent = true
    for _ in 0..<4_000 {
      var report: [UInt8] = [0x8f, 205, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1]
      for _ in 0..<20 { report.append(UInt8(truncatingIfNeeded: random.next())) }
      report[14] = 0
      report[15] = 4
      report[20] = 0xe0
      party.viewers[0].sendRTCP(report)
      party.call.run(milliseconds: 1)
    }
    #expect(party.frames(party.viewers[1], since: start)[2] >= 118)
    #expect(party.audioPackets(party.viewers[0], since: start) >= 195)
    // Two viewers at 1.5 Mbit/s, plus probes.
    #expect(party.call.sfu.counters.bytesOut - sent < 3_000_000)
  }
}

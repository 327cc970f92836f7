import MediaModel
import RTP
import Testing

@testable import Forwarding

struct QualityTests {
  /// One report of 100 packets, then a judgement 2 s after the previous one.
  private struct Judged {
    var quality = QualityMeter()
    var now = instant(1000)
    var octets: UInt64 = 0

    init() { _ = quality.judge(roundTrip: .zero, octets: 0, now: now) }

    mutating func judge(lost: UInt8 = 0, roundTrip: Int = 20, jitter: Int = 5) -> Int? {
      quality.reported(fractionLost: lost, of: 100, jitter: .milliseconds(jitter))
      now = now.advanced(by: QualityMeter.interval)
      octets += 250_000
      return quality.judge(roundTrip: .milliseconds(roundTrip), octets: octets, now: now)?.level
    }
  }

  @Test func theFirstJudgementIsToldAndThenOnlyAChange() {
    var judged = Judged()
    #expect(judged.judge() == 4)
    for _ in 0..<10 { #expect(judged.judge() == nil) }
  }

  @Test(arguments: [
    (0 as UInt8, 20, 5, 4), (5, 20, 5, 3), (15, 20, 5, 2), (40, 20, 5, 1), (80, 20, 5, 0), (255, 20, 5, 0),
    (0, 400, 5, 3), (0, 700, 5, 2), (0, 1500, 5, 1), (0, 60_000, 5, 0), (0, 20, 60, 3), (0, 20, 1000, 0),
    (15, 400, 5, 2),
  ])
  func theWorstOfLossRoundTripAndJitterCounts(lost: UInt8, roundTrip: Int, jitter: Int, level: Int) {
    var judged = Judged()
    #expect(judged.judge(lost: lost, roundTrip: roundTrip, jitter: jitter) == level)
  }

  @Test func itFallsAtOnceAndRisesALevelAtATimeAfterPatience() {
    var judged = Judged()
    #expect(judged.judge() == 4)
    #expect(judged.judge(roundTrip: 700) == 2)
    #expect(judged.judge() == nil)
    #expect(judged.judge(roundTrip: 700) == nil, "the count restarts")
    #expect((0..<6).map { _ in judged.judge() } == [nil, nil, 3, nil, nil, 4])
  }

  @Test func itIsJudgedAtMostEveryTwoSecondsAndNotWithoutReports() {
    var judged = Judged()
    let later = judged.now.advanced(by: .milliseconds(1999))
    judged.quality.reported(fractionLost: 0, of: 10, jitter: .zero)
    #expect(judged.quality.judge(roundTrip: .zero, octets: 0, now: later) == nil)
    var silent = Judged()
    silent.quality.reported(fractionLost: 255, of: 0, jitter: .seconds(9))
    #expect(silent.quality.judge(roundTrip: .zero, octets: 0, now: instant(9000)) == nil, "nothing was sent")
  }

  @Test func theBitrateIsOfTheTimeSinceTheLastJudgement() throws {
    var judged = Judged()
    judged.quality.reported(fractionLost: 0, of: 100, jitter: .zero)
    let told = judged.quality.judge(roundTrip: .zero, octets: 250_000, now: judged.now.advanced(by: .seconds(2)))
    #expect(try #require(told).bitrate == 1_000_000)
  }

  private func qualities(_ call: SimulatedCall, of peer: TestPeer) -> [(level: Int, bitrate: Int)] {
    call.events.compactMap { event in
      if case .quality(peer.configuration.peer, let level, let bitrate) = event { (level, bitrate) } else { nil }
    }
  }

  /// Runs second by second; after each the peer reports on its first video slot.
  private func run(_ call: SimulatedCall, seconds: Int, _ peer: TestPeer, lost: UInt8) {
    for _ in 0..<seconds {
      call.run(milliseconds: 1000)
      let ssrc = peer.configuration.slots[0].ssrc
      guard let last = peer.senderReports.last(where: { $0.report.ssrc == ssrc }) else { continue }
      let held = UInt64(max(0, last.at.duration(to: call.now).nanoseconds))
      let block = ReportBlock(
        ssrc: ssrc, fractionLost: lost, cumulativeLost: 0, highestSequence: 0, jitter: 90,
        lastSenderReport: last.report.ntp.compact,
        delaySinceLastSenderReport: NTPTimestamp.compact(ofNanoseconds: held))
      peer.sendRTCP { $0.receiverReport(ssrc: 1, reports: [block].span) }
    }
  }

  @Test func aReceiverIsToldHowItIsServed() throws {
    let call = SimulatedCall()
    call.join([.camera])
    let b = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    run(call, seconds: 6, b, lost: 0)
    let good = try #require(qualities(call, of: b).first)
    #expect(good.level == 4 && good.bitrate > 50_000)
    run(call, seconds: 6, b, lost: 60)
    #expect(try #require(qualities(call, of: b).last).level <= 1)
    #expect(qualities(call, of: call.peers[0]).isEmpty, "it receives nothing")
  }

  @Test func aLongRoundTripIsToldToo() throws {
    let call = SimulatedCall()
    call.join([.camera])
    let b = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    call.network.conditions.delay = 350...350
    run(call, seconds: 8, b, lost: 0)
    #expect(try #require(qualities(call, of: b).last).level == 2)
  }

  @Test func anUnreachableParticipantHasLevelZero() throws {
    let call = SimulatedCall()
    call.join([.camera])
    let b = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    run(call, seconds: 6, b, lost: 0)
    b.isPresent = false
    call.run(milliseconds: 12_000)
    #expect(qualities(call, of: b).map(\.level) == [4, 0])
  }

  @Test func numbersOfAHostileReportAreHarmless() throws {
    let call = SimulatedCall()
    call.join([.camera])
    let b = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    for value in [UInt32.max, 0x8000_0000, 1] {
      call.run(milliseconds: 1100)
      let block = ReportBlock(
        ssrc: b.configuration.slots[0].ssrc, fractionLost: 255, cumulativeLost: -1, highestSequence: value,
        jitter: value,
        lastSenderReport: value, delaySinceLastSenderReport: value)
      b.sendRTCP { $0.receiverReport(ssrc: value, reports: [block, block, block].span) }
    }
    call.run(milliseconds: 3000)
    #expect(qualities(call, of: b).last?.level == 0)
  }
}

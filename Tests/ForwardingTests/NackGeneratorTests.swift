import MediaModel
import Octets
import Paths
import Testing

@testable import Forwarding

struct NackGeneratorTests {
  private func due(_ nacks: inout NackGenerator, _ milliseconds: UInt64, roundTrip: Int = 40) -> [UInt16] {
    var missing = InlineArray<256, UInt16>(repeating: 0)
    let count = nacks.takeDue(instant(milliseconds), roundTrip: .milliseconds(roundTrip), into: missing.mutableSpan)
    return (0..<count).map { missing[$0] }
  }

  @Test func asksForAHoleAfterTheTolerance() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_603, now: instant(0)) == true)
    #expect(nacks.deadline == instant(10))
    #expect(due(&nacks, 9).isEmpty)
    #expect(due(&nacks, 10) == [65, 66])
    #expect(nacks.deadline == instant(64))
  }

  @Test func neverAsksForWhatCame() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_603, now: instant(0)) == true)
    nacks.arrived(65_601, isRetransmission: false, now: instant(1))
    #expect(due(&nacks, 10) == [66])
    nacks.arrived(65_602, isRetransmission: true, now: instant(50))
    #expect(nacks.deadline == nil)
    #expect(due(&nacks, 100).isEmpty)
  }

  @Test(arguments: [(1, 10), (40, 6), (250, 2), (500, 2)]) func givesUpAfterALongWait(roundTrip: Int, tries: Int) {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_602, now: instant(0)) == true)
    let times = (0...700 as ClosedRange<UInt64>).filter { !due(&nacks, $0, roundTrip: roundTrip).isEmpty }
    #expect(times.count == tries)
    let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
    for (a, b) in zip(pauses, pauses.dropFirst()) { #expect(b * 4 >= a * 5 - 4, "a quarter longer each time") }
    #expect(pauses.first ?? 0 >= roundTrip + roundTrip / 10 + 10)
    #expect(nacks.count == 0)
    #expect(nacks.takeGivenUp() == 65_601)
    #expect(nacks.takeGivenUp() == nil)
  }

  @Test func aHoleThatIsFilledIsNotGivenUp() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 65_602, now: instant(0)) == true)
    for i in 0...550 as ClosedRange<UInt64> { _ = due(&nacks, i) }
    nacks.arrived(65_601, isRetransmission: true, now: instant(550))
    #expect(due(&nacks, 1000).isEmpty)
    #expect(nacks.takeGivenUp() == nil)
  }

  @Test func isBounded() {
    var nacks = NackGenerator()
    #expect(nacks.jumped(from: 65_600, to: 75_000, now: instant(0)) == false)
    var highest: UInt64 = 65_600
    for _ in 0..<20 {
      _ = nacks.jumped(from: highest, to: highest + 100, now: instant(0))
      highest += 100
      #expect(nacks.count <= NackGenerator.capacity)
    }
  }
}

struct ReorderToleranceTests {
  @Test(arguments: 1...5 as ClosedRange<UInt64>) func coversMostOfThePacketsThatAreLate(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var tolerance = ReorderTolerance()
    let delays = (0..<4_000).map { _ in Duration.microseconds(Int.random(in: 0...28_000, using: &random)) }
    var covered = 0
    for (i, delay) in delays.enumerated() {
      if i >= 1_000, delay <= tolerance.duration { covered += 1 }
      tolerance.late(by: delay)
    }
    #expect((0.9...0.98).contains(Double(covered) / 3_000))
  }

  @Test func isShortWherePacketsAreLostAndNeverLate() {
    var tolerance = ReorderTolerance()
    for _ in 0..<1_000 { tolerance.lost() }
    #expect(tolerance.duration < .microseconds(5_100))
  }

  /// A sender chooses its delays.
  @Test func staysWithinItsBounds() {
    var tolerance = ReorderTolerance()
    for delay in [Duration.seconds(1 << 40), .zero, .seconds(-5), .seconds(1 << 40)] {
      for _ in 0..<1_000 {
        tolerance.late(by: delay)
        #expect(tolerance.duration >= ReorderTolerance.least && tolerance.duration <= ReorderTolerance.most)
      }
    }
  }

  /// Jitter of 30 ms reorders packets, but none is lost, so each NACK is unnecessary.
  @Test(arguments: 1...(isRelease ? 5 : 1) as ClosedRange<UInt64>) func jitterCostsFewNACKs(seed: UInt64) throws {
    var conditions = NetworkConditions()
    conditions.delay = 5...35
    let call = SimulatedCall(seed: seed, conditions)
    let sender = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 5_000)
    let (asked, sent) = (call.sfu.counters.nacksSent, sender.tracks[0].packetCount)
    call.run(milliseconds: 20_000)
    let packets = Double(sender.tracks[0].packetCount - sent)
    #expect(packets > 1_500)
    #expect(Double(call.sfu.counters.nacksSent - asked) <= 0.02 * packets)
  }
}

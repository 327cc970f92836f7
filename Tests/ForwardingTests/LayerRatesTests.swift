import CongestionControl
import MediaModel
import Testing

@testable import Forwarding

struct LayerRatesTests {
  private func instant(_ milliseconds: UInt64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

  @Test func eachTargetHasTheRateOfItsPackets() {
    var rates = LayerRates()
    for i in UInt64(0)..<150 {
      #expect(rates.isMeasured == (i > 25))
      rates.add(952, present: i % 2 == 0 ? 0b111 : 0b100, timestamp: UInt32(i) * 1_800, now: instant(i * 20))
    }
    // 50 packets of 1,000 bytes a second, half of them in the lower targets.
    #expect(abs(rates[2] - 400_000) < 20_000)
    #expect(abs(rates[0] - 200_000) < 20_000)
    #expect(rates[3] == 0)
  }

  @Test func aPauseIsNoLowRate() {
    var rates = LayerRates()
    for i in UInt64(0)..<100 { rates.add(952, present: 1, timestamp: UInt32(i) * 1_800, now: instant(i * 20)) }
    let before = rates[0]
    rates.add(952, present: 1, timestamp: 5_400_000, now: instant(60_000))
    #expect(rates[0] == before)
    #expect(before > 380_000)
  }

  /// A target is choppy below 10 pictures a second, and smooth from 12 on; in between it does not change.
  @Test func aTargetWithFewPicturesIsChoppyUntilItHasMany() {
    var rates = LayerRates()
    var now: UInt64 = 0
    func isChoppy(at frequency: UInt64) -> [Bool] {
      for i in 0..<frequency * 3 {
        let time = now + i * 1_000 / frequency
        // Every second picture is also in target 0, and target 2 has the same pictures in separate frames, as in
        // L2T2_KEY. One packet came late.
        for present: UInt32 in [i % 2 == 0 ? 0b011 : 0b010, i % 2 == 0 ? 0b011 : 0b010, 0b100] {
          rates.add(952, present: present, timestamp: UInt32(time) * 90, now: instant(time))
        }
        if i > 0 { rates.add(952, present: 0b111, timestamp: UInt32(time) * 90 - 9, now: instant(time)) }
      }
      now += 3_000
      return [rates.isChoppy(0), rates.isChoppy(1), rates.isChoppy(2)]
    }
    #expect(isChoppy(at: 30) == [false, false, false])
    #expect(isChoppy(at: 22) == [false, false, false])
    #expect(isChoppy(at: 18) == [true, false, false])
    #expect(isChoppy(at: 22) == [true, false, false])
    #expect(isChoppy(at: 5) == [true, true, true])
    #expect(isChoppy(at: 24) == [false, false, false])
  }

  @Test func aCopyIsNotSentTwiceInARoundTripNorBeyondTheShare() {
    var budget = CopyBudget(now: instant(0))
    func permits(_ number: UInt16, _ time: UInt64) -> Bool {
      budget.permits(number, of: 7, rate: 1_000_000, roundTrip: .milliseconds(100), now: instant(time))
    }
    #expect(permits(1, 10))
    #expect(!permits(1, 60))
    #expect(permits(1, 120))
    var bytes = 0
    for i in UInt64(0)..<2_000 where permits(UInt16(2 + i), 1_000 + i) {
      budget.sent(1_200)
      bytes += 1_200
    }
    // 30 % of 1 Mbit/s in 2 s, and the burst.
    #expect(bytes > 75_000)
    #expect(bytes < 100_000)
  }
}

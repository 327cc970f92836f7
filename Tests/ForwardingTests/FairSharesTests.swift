import MediaModel
import Octets
import Testing

@testable import Forwarding

struct FairSharesTests {
  private func need(_ fixed: Double, _ video: Double) -> FairShares.Need { .init(fixed: fixed, video: video) }

  @Test func theDearestCallGivesFirst() {
    let (small, large) = (need(10, 100), need(10, 900))
    let shares = FairShares(of: [small, large], share: 0.5)
    #expect(shares[small] == 1)
    #expect(abs(shares[large] - 400 / 900) < 1e-6)
  }

  /// A flood of audio is not shed, so the video of its call is shed before that of others.
  @Test func audioCountsBeforeVideo() {
    let (honest, flooded) = (need(20, 300), need(2_000, 300))
    let shares = FairShares(of: [honest, flooded], share: 0.5)
    #expect(abs(shares[honest] - 1) < 1e-6)
    #expect(shares[flooded] < 1e-6)
  }

  @Test func equalCallsHaveEqualShares() {
    let needs = Array(repeating: need(5, 50), count: 20)
    let shares = FairShares(of: needs, share: 0.3)
    for need in needs { #expect(abs(shares[need] - 0.3) < 1e-6) }
  }

  @Test func theEndsAreExact() {
    let needs = [need(0, 3), need(1, 0), need(0, 0), need(7, 1e9)]
    for need in needs { #expect(FairShares(of: needs, share: 1)[need] == 1) }
    for need in needs { #expect(FairShares(of: needs, share: 0)[need] == 0) }
    for need in needs { #expect(FairShares(of: [need], share: 1)[need] == 1) }
    for need in needs { #expect(FairShares(of: [need], share: 0)[need] == 0) }
    // A call without video can begin with a full share; the next division takes it into account.
    #expect(FairShares(of: [need(5, 0)], share: 0.5)[need(5, 0)] == 1)
  }

  /// All available time is given, and no call with less video than another has a smaller share.
  @Test(arguments: 0..<200 as Range<UInt64>) func allIsGivenAndNoCheaperCallHasLess(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let needs = (0..<Int.random(in: 1...60, using: &random)).map { _ in
      need(Double.random(in: 0...100, using: &random), Double.random(in: 0...1_000, using: &random))
    }
    let share = random.uniform()
    let shares = FairShares(of: needs, share: share)
    let given = needs.reduce(0) { $0 + shares[$1] * $1.video }
    let all = needs.reduce(0) { $0 + $1.video }
    #expect(abs(given - share * all) < 1e-3 * all, "seed \(seed)")
    for a in needs {
      for b in needs where a.fixed <= b.fixed && a.video <= b.video {
        #expect(shares[a] >= shares[b] - 1e-9, "seed \(seed)")
      }
    }
  }
}

struct LoadMeterTests {
  @Test func ratesAreThoseOfTheLastHalfSecond() {
    var meter = LoadMeter()
    for millisecond in 0..<2_000 as Range<UInt64> {
      meter.add(1_000, copies: 3, slots: 5, isVideo: true, now: instant(10_000 + millisecond))
      if millisecond % 20 == 0 {
        meter.add(100, copies: 3, slots: 3, isVideo: false, now: instant(10_000 + millisecond))
      }
    }
    let rates = meter.rates(now: instant(12_000))
    #expect(abs(Double(rates.video) - 6e6) < 0.02 * 6e6)
    #expect(abs(Double(rates.offered) - 10e6) < 0.02 * 10e6)
    #expect(abs(Double(rates.fixed) - 165_000) < 0.05 * 165_000)
    #expect(meter.rates(now: instant(20_000)).video == 0, "nothing came for 8 s")
  }

  @Test func aFloodCountsAtOnce() {
    var meter = LoadMeter()
    for millisecond in 0..<1_000 as Range<UInt64> {
      meter.add(1_000, copies: 1, slots: 1, isVideo: true, now: instant(10_000 + millisecond))
    }
    for millisecond in 0..<150 as Range<UInt64> {
      for _ in 0..<50 { meter.add(1_000, copies: 1, slots: 1, isVideo: true, now: instant(11_000 + millisecond)) }
    }
    #expect(meter.rates(now: instant(11_150)).video > 50_000_000)
  }
}

/// Two calls of one worker that cannot keep up.
struct FairSheddingTests {
  @Test func aSmallCallLosesNothingByALargeOne() throws {
    let call = SimulatedCall()
    let other = CallID(unchecked: "small")
    let small = (0..<2).map { _ in call.join([.camera], audioSlots: 0, videoSlots: 1, of: other) }
    let large = (0..<2).map { _ in call.join([.microphone, .camera], audioSlots: 0, videoSlots: 0) }
    let viewers = (0..<12).map { _ in call.join([], audioSlots: 2, videoSlots: 2) }
    try call.connect()
    call.run(milliseconds: 2_000)
    func count(_ viewers: [TestPeer], _ senders: [TestPeer]) -> Int {
      viewers.reduce(0) { sum, viewer in
        sum
          + senders.reduce(0) { sum, sender in
            sum + (sender === viewer ? 0 : viewer.serials(of: sender.tracks.last!).count)
          }
      }
    }
    func measure(_ body: () -> Void) -> (small: Int, large: Int) {
      let before = (count(small, small), count(viewers, large))
      body()
      return (count(small, small) - before.0, count(viewers, large) - before.1)
    }
    let full = measure { call.run(milliseconds: 2_000) }
    // The worker repeats its share at each judgement.
    func shed(_ share: Double, milliseconds: Int) {
      for _ in 0..<milliseconds / 50 {
        call.sfu.setVideoShare(share, now: call.now)
        call.run(milliseconds: 50)
      }
    }
    shed(0.5, milliseconds: 500)
    let less = measure { shed(0.5, milliseconds: 2_000) }
    #expect(Double(less.small) >= 0.98 * Double(full.small), "\(less.small) of \(full.small)")
    let part = Double(less.large) / Double(full.large)
    #expect(part > 0.3 && part < 0.65, "\(part)")
    shed(1, milliseconds: 1_000)
    let back = measure { shed(1, milliseconds: 2_000) }
    #expect(Double(back.large) >= 0.95 * Double(full.large))
    #expect(call.sfu.calls.values.allSatisfy { $0.videoShare == 1 })
  }
}

import MediaModel
import Octets
import Paths
import RTP
import Testing

@testable import Forwarding

/// Transport-wide numbers to receivers, and what their reports reveal about the path.
struct FeedbackTests {
  /// A sender and two receivers of which the first reports.
  private func call(_ conditions: NetworkConditions = .init()) throws -> (SimulatedCall, [TestPeer]) {
    let call = SimulatedCall(conditions)
    let sender = call.join(audioSlots: 0, videoSlots: 0)
    sender.tracks[0].payloadLength = 100
    let receivers = [call.join([]), call.join([])]
    receivers[0].reportArrivals()
    call.configure(receivers[0])
    try call.connect()
    return (call, [sender] + receivers)
  }

  private func rate(_ call: SimulatedCall, _ peer: TestPeer) -> Int? {
    call.sfu.peersByID[peer.configuration.peer]?.transport.downlink?.pointee.rate
  }

  @Test func eachPacketHasTheNextNumberWhateverItsSlot() throws {
    let (call, peers) = try call()
    call.run(milliseconds: 3000)
    let arrivals = peers[1].feedback.arrivals
    #expect(arrivals.count > 300)
    for (a, b) in zip(arrivals, arrivals.dropFirst()) { #expect(b.number == a.number &+ 1) }
    #expect(Set(arrivals.map(\.ssrc)).count == 2)
    #expect(peers[2].feedback.arrivals.isEmpty)
    #expect(rate(call, peers[2]) == nil)
    #expect(peers[1].refused == 0)
  }

  @Test func retransmissionsHaveNumbersOfTheirOwn() throws {
    let (call, peers) = try call()
    call.network.conditions.loss = 0.05
    call.run(milliseconds: 4000)
    let arrivals = peers[1].feedback.arrivals
    let copies = Set(peers[1].configuration.slots.map(\.rtxSSRC))
    #expect(arrivals.count { copies.contains($0.ssrc) } > 10)
    #expect(Set(arrivals.map(\.number)).count == arrivals.count)
  }

  @Test func theEstimateFollowsTheLink() throws {
    let (call, peers) = try call()
    peers[0].tracks[1].packetsPerFrame = 2
    call.run(milliseconds: 3000)
    let before = try #require(rate(call, peers[1]))
    call.network.links[peers[1].address] = Link(rate: 300_000)
    call.run(milliseconds: 3000)
    let after = try #require(rate(call, peers[1]))
    #expect(before >= 600_000)
    #expect(after < 330_000)
    let counters = call.sfu.counters
    #expect(counters.feedbackReceived > 100)
    #expect(counters.drops(.feedback) == 0)
    let estimates = counters.estimates
    #expect(estimates.counts.indices.reduce(0) { $0 + estimates.counts[$1] } == 6)
  }

  /// Numbers that were never sent, arbitrary times, and more reports than any browser sends.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func reportsOfAnAttackerAreBounded(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let (call, peers) = try call()
    call.run(milliseconds: 500)
    peers[1].feedback.isSilent = true
    for _ in 0..<200 {
      for _ in 0..<10 {
        var report: [UInt8] = [0x8f, 205, 0, 25, 0, 0, 0, 1, 0, 0, 0, 1]
        for _ in 0..<4 { report.append(UInt8(truncatingIfNeeded: random.next())) }
        report[14] &= 0x0f
        for _ in 16..<104 { report.append(UInt8(truncatingIfNeeded: random.next())) }
        // A run that covers the whole count, received or not.
        report[20] = random.next() % 2 == 0 ? 0x1f : 0x3f
        report[21] = 0xff
        peers[1].sendRTCP(report)
      }
      call.run(milliseconds: 1)
    }
    let counters = call.sfu.counters
    #expect(counters.drops(.feedback) > 100)
    #expect(counters.drops(.feedback) + counters.drops(.malformed) < 2_000)
    let estimate = try #require(rate(call, peers[1]))
    #expect((60_000...20_000_000).contains(estimate))
    // At least audio continues.
    let before = peers[1].streams.values.reduce(0) { $0 + $1.packets.count }
    call.run(milliseconds: 1000)
    #expect(peers[1].streams.values.reduce(0) { $0 + $1.packets.count } > before + 45)
  }
}

import MediaModel
import RTP
import Testing

@testable import Forwarding

struct ReportTests {
  @Test func sendersLearnTheirLoss() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 1500)
    a.reports = []
    call.run(milliseconds: 2000)
    #expect(a.reports.count == 2)
    #expect(a.reports.allSatisfy { $0.ssrc == a.tracks[0].ssrc && $0.fractionLost == 0 && $0.cumulativeLost == 0 })
    #expect(a.reports.allSatisfy { $0.lastSenderReport != 0 })
    call.network.conditions.loss = 0.2
    call.run(milliseconds: 3000)
    let worst = try #require(a.reports.map(\.fractionLost).max())
    #expect((20...110).contains(worst))
  }

  /// A moment of one sender has the same NTP time in the reports of all its slots, so lips stay in sync.
  @Test(arguments: workerCounts) func reportsOfOneSendersSlotsShareAClock(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let a = call.join()
    let b = call.join([])
    try call.connect()
    call.run(milliseconds: 4500)
    let slots = b.configuration.slots.filter { !b.streams[$0.ssrc]!.packets.isEmpty }
    #expect(slots.count == 2)
    var captures: [Int64] = []
    for slot in slots {
      let report = try #require(b.senderReports.last { $0.report.ssrc == slot.ssrc }?.report)
      let rate = Int64(slot.formats[0].clockRate)
      // The time at which the stream's newest packet was made, according to the report.
      let newest = try #require(b.streams[slot.ssrc]!.ordered.last)
      let ticks = Int64(Int32(bitPattern: newest.timestamp &- report.rtpTimestamp))
      let capture = Int64(report.ntp.nanoseconds) + ticks * 1_000_000_000 / rate
      captures.append(capture - Int64(newest.arrival.nanoseconds))
      #expect(report.packetCount > 50)
    }
    // The test's sender stamps a frame and its report alike up to the frame interval.
    #expect(abs(captures[0] - captures[1]) < 40_000_000)
    #expect(a.isConnected)
  }

  @Test func jitterAndCyclesAreCounted() throws {
    var statistics = ReceptionStatistics()
    for i in 0..<10 as Range<UInt64> {
      statistics.received(131_060 + i, timestamp: UInt32(i) * 3000, arrival: UInt32(i) * 3000 + (i % 2 == 0 ? 0 : 160))
    }
    let first = statistics.report(ssrc: 1, now: instant(0))
    let block = try #require(first)
    #expect(block.highestSequence == 65_533)
    #expect((60...100).contains(block.jitter))
    #expect(block.lastSenderReport == 0)
    let second = statistics.report(ssrc: 1, now: instant(0))
    #expect(try #require(second).fractionLost == 0)
  }

  @Test func aByeIsTolerated() throws {
    let call = SimulatedCall()
    let a = call.join([.camera])
    let b = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    a.sendRTCP { $0.bye(ssrc: a.tracks[0].ssrc) }
    let before = b.serials(of: a.tracks[0]).count
    call.run(milliseconds: 500)
    #expect(b.serials(of: a.tracks[0]).count > before + 20)
  }

  @Test func tracksThatOneReportHasNoRoomForAreInTheNext() throws {
    let call = SimulatedCall()
    let sender = call.join([TrackSource](repeating: .camera, count: 20))
    call.join([], videoSlots: 20)
    try call.connect()
    for track in sender.tracks { track.packetsPerFrame = 1 }
    call.run(milliseconds: 1000)
    sender.reports = []
    call.run(milliseconds: 2100)
    #expect(Set(sender.reports.map(\.ssrc)) == Set(sender.tracks.map(\.ssrc)))
  }
}

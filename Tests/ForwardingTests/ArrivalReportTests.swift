import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// Transport-wide feedback to publishers.
struct ArrivalReportTests {
  /// Runs a call with one publisher for some seconds.
  private func published(
    _ sources: [TrackSource], seconds: Int, _ conditions: NetworkConditions = .init(),
    setUp: (TestPeer) -> Void = { _ in }
  ) throws -> (call: SimulatedCall, sender: TestPeer) {
    let call = SimulatedCall(conditions)
    let sender = call.join(sources)
    setUp(sender)
    call.configure(sender)
    call.join([])
    try call.connect()
    call.run(milliseconds: 1000 * seconds)
    // The packets in flight arrive and are reported.
    for track in sender.tracks { track.isSending = false }
    call.run(milliseconds: 600)
    return (call, sender)
  }

  @Test func eachPacketIsReportedWithTheTimeOfItsArrival() throws {
    let (call, sender) = try published([.microphone, .camera], seconds: 4)
    var arrivals: [UInt16: Int64] = [:]
    for report in sender.arrivalReports {
      for status in report.statuses {
        if let offset = status.offset { arrivals[status.number] = report.reference + offset }
      }
    }
    #expect(sender.departures.count > 500)
    #expect(Set(arrivals.keys) == Set(sender.departures.map(\.number)))
    // The numbers cover both tracks, across the wrap of 16 bits.
    #expect(Set(sender.departures.map(\.ssrc)) == Set(sender.tracks.map(\.ssrc)))
    #expect(arrivals[65_535] != nil && arrivals[0] != nil)
    // They were sent in this order, over a network that keeps it.
    let times = sender.departures.compactMap { arrivals[$0.number] }
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
    let last = try #require(times.last)
    #expect((4_000_000...4_800_000).contains(last - times[0]))
    #expect(call.sfu.counters.arrivalReportsSent == UInt64(sender.arrivalReports.count))
    #expect(call.sfu.counters.arrivalsUnreported == 0)
    let own = Set(sender.tracks.map(\.ssrc))
    #expect(sender.arrivalReports.allSatisfy { own.contains($0.media) })
  }

  @Test func lostPacketsAreReportedMissingAndRetransmissionsArrive() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    call.network.conditions.loss = 0.1
    call.run(milliseconds: 4000)
    let statuses = sender.arrivalReports.flatMap(\.statuses)
    let arrived = Set(statuses.filter { $0.offset != nil }.map(\.number))
    let missing = Set(statuses.map(\.number)).subtracting(arrived)
    // Reports are lost, too, so the test checks the share of the numbers that some report covers.
    let share = Double(missing.count) / Double(missing.count + arrived.count)
    #expect((0.05...0.16).contains(share))
    let repaired = sender.departures.filter { $0.ssrc == sender.tracks[0].rtxSSRC }
    #expect(repaired.count > 20)
    #expect(repaired.filter { arrived.contains($0.number) }.count * 2 > repaired.count)
  }

  /// 5 % of the rate, from 50 ms to 250 ms.
  @Test func reportsAreAsFrequentAsTheRateAllows() throws {
    let (_, video) = try published([.camera], seconds: 4)
    let frequent = intervals(of: video)
    #expect(frequent.count > 40)
    #expect(frequent.allSatisfy { (50...90).contains($0) })
    // 50 packets of 20 bytes a second.
    let (_, audio) = try published([.microphone], seconds: 4) { $0.tracks[0].payloadLength = 20 }
    let rare = intervals(of: audio).dropFirst(3)
    #expect(rare.count > 8)
    #expect(rare.allSatisfy { (250...275).contains($0) })
  }

  @Test func aPeerThatNumbersNothingGetsNoReports() throws {
    let (call, sender) = try published([.camera], seconds: 2) { $0.configuration.extensions.transportSequence = 0 }
    #expect(sender.departures.isEmpty && sender.arrivalReports.isEmpty)
    #expect(call.sfu.counters.arrivalReportsSent == 0)
  }

  @Test func theNumbersGoToNoReceiver() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    let receiver = call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    let packets = receiver.streams.values.flatMap { $0.packets.values }
    #expect(packets.count > 50)
    #expect(packets.allSatisfy { $0.extensions[sender.configuration.extensions.transportSequence] == nil })
  }

  /// An attacker's numbers: jumps, repetitions, always the same, every other one. Work and answers stay bounded, and
  /// honest numbers are reported afterwards.
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func numbersOfAnAttackerCauseFewReports(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let call = SimulatedCall()
    let sender = call.join([.camera])
    try call.connect()
    sender.tracks[0].isSending = false
    let before = call.sfu.counters.arrivalReportsSent
    for _ in 0..<2_000 {
      call.run(milliseconds: 1)
      for _ in 0..<4 {
        switch seed {
        case 1: sender.transportNumber = UInt16(truncatingIfNeeded: random.next())
        case 2: sender.transportNumber = 7
        case 3: sender.transportNumber &+= 900
        default: sender.transportNumber &+= 1
        }
        sender.tracks[0].packetsPerFrame = 1
        for packet in sender.tracks[0].nextFrame(extensions: sender.configuration.extensions) { sender.send(packet) }
      }
    }
    // At most four reports every 50 ms.
    let reports = call.sfu.counters.arrivalReportsSent - before
    #expect(reports <= 4 * 2_000 / 50 + 4)
    #expect(sender.arrivalReports.allSatisfy { $0.length <= 1_000 })
    if seed <= 2 { #expect(call.sfu.counters.arrivalsUnreported > 500) }
    sender.transportNumber &+= 5_000
    call.run(milliseconds: 500)
    let first = sender.departures.count
    sender.tracks[0].packetsPerFrame = 5
    sender.tracks[0].isSending = true
    call.run(milliseconds: 1000)
    let arrived = Set(sender.arrivalReports.flatMap(\.statuses).filter { $0.offset != nil }.map(\.number))
    let honest = sender.departures[first...].dropLast(30)
    #expect(honest.count > 40)
    #expect(honest.allSatisfy { arrived.contains($0.number) })
  }

  private func intervals(of peer: TestPeer) -> [UInt64] {
    let times = peer.arrivalReports.map { $0.at.nanoseconds / 1_000_000 }
    return zip(times, times.dropFirst()).map { $1 - $0 }.dropLast()
  }
}

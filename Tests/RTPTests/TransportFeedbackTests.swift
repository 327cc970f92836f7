import RTP
import Seeded
import Testing

struct TransportFeedbackTests {
  /// Vectors from pion/rtcp's tests, recorded from Chrome: padded by one byte, in violation of RFC 3550.
  @Test func readsARunAndItsDelta() throws {
    let report = try read("afcd0005 fa17fa17 4303 2fa0 0099 0001 3de802 17 2001 94 01")
    #expect(report.statuses.map(\.number) == [153])
    #expect(report.statuses.map(\.offset) == [37_000])
    #expect(report.sender == 0xfa17_fa17)
    #expect(report.media == 0x4303_2fa0)
    #expect(report.referenceTime == 4_057_090)
    #expect(report.reportNumber == 23)
  }

  @Test func readsVectorsOfOneAndOfTwoBitsAndDeltasOfBothSizes() throws {
    // One bit each for 14 packets: the first and the third arrived. Then two bits each: one with a negative delta.
    let report = try read("8fcd0007 00000001 00000002 fffe 000f 000001 00 a800 e000 04 08 ffff 00000000")
    let arrived = report.statuses.filter { $0.offset != nil }
    #expect(report.statuses.count == 15)
    #expect(arrived.map(\.number) == [65_534, 0, 12])
    #expect(arrived.map(\.offset) == [1_000, 3_000, 2_750])
  }

  static let broken = [
    ("another type", "8fce0005 00000001 00000002 0001 0001 000001 00 2001 04 00"),
    ("another format", "8ecd0005 00000001 00000002 0001 0001 000001 00 2001 04 00"),
    ("no packets", "8fcd0005 00000001 00000002 0001 0000 000001 00 2001 04 00"),
    ("a run of nothing", "8fcd0005 00000001 00000002 0001 0001 000001 00 0000 04 00"),
    ("the reserved symbol", "8fcd0005 00000001 00000002 0001 0001 000001 00 6001 04 00"),
    ("fewer chunks than packets", "8fcd0005 00000001 00000002 0001 0004 000001 00 0001 0001"),
    ("fewer deltas than arrivals", "8fcd0005 00000001 00000002 0001 0003 000001 00 2003 04 04"),
    ("a length that is not the packet's", "8fcd0006 00000001 00000002 0001 0001 000001 00 2001 04 00"),
    ("padding over the header", "afcd0005 00000001 00000002 0001 0001 000001 00 2001 04 19"),
    ("more packets than it may have", "8fcd0005 00000001 00000002 0001 1001 000001 00 1fff 0000"),
  ]

  @Test(arguments: broken) func refuses(_ what: String, _ hex: String) {
    #expect(bytes(hex).withUnsafeBytes { TransportFeedback(parsing: $0) == nil })
  }

  @Test(arguments: [41, 42, 43] as [UInt64])
  func mutatedReportsAreReadWithinTheirBounds(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let corpus = [
      bytes("8fcd0007 00000001 00000002 fffe 000f 000001 00 a800 e000 04 08 ffff 00000000"),
      bytes("8fcd0005 00000001 00000002 0001 0003 000001 00 2002 04 04"),
    ]
    var read = 0
    for _ in 0..<20_000 {
      let packet = generator.mutated(corpus.randomElement(using: &generator)!)
      packet.withUnsafeBytes { packet in
        guard let feedback = TransportFeedback(parsing: packet) else { return }
        let statuses = Array(feedback)
        #expect((1...TransportFeedback.mostPackets).contains(statuses.count))
        read += 1
      }
    }
    #expect(read > 500)
  }

  /// The reports say correctly what happened to each packet: late, duplicated or lost.
  @Test(arguments: [51, 52, 53, 54] as [UInt64])
  func aRecordersReportsSayWhatArrived(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var recorder = TransportFeedbackRecorder()
    var clock = FeedbackClock()
    var arrivals: [UInt16: Int64] = [:]
    var heard: [UInt16: Int64] = [:]
    var now: Int64 = 1_000_000_000
    var late: [UInt16] = []
    var number: UInt16 = 65_000
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0...300, using: &generator) {
        now += [100, 1_000, 40_000].randomElement(using: &generator)!
        number &+= 1
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: continue
        case 1: late.append(number)
        default:
          recorder.received(number, now: now)
          arrivals[number] = now
        }
        if late.count > 5 {
          let number = late.removeFirst()
          recorder.received(number, now: now)
          arrivals[number] = now
          recorder.received(number, now: now + 500)
        }
      }
      while recorder.isDue {
        let report = written { recorder.write(sender: 1, media: 2, into: $0) }
        #expect(!report.isEmpty && report.count <= 1_300)
        try report.withUnsafeBytes { report in
          let feedback = try #require(TransportFeedback(parsing: report))
          let time = clock.microseconds(feedback.referenceTime)
          let base = try #require(time)
          for status in feedback { if let offset = status.offset { heard[status.number] = base + offset } }
        }
      }
    }
    #expect(heard.count == arrivals.count)
    #expect(heard.count > 3_000)
    // Only differences are meaningful: the reference time has 24 bits.
    let shift = try #require(arrivals.first.map { heard[$0.key]! - $0.value / 250 * 250 })
    for (number, arrival) in arrivals { #expect(heard[number] == arrival / 250 * 250 + shift) }
  }

  @Test func aNumberFromNowhereDoesNotMakeTheRecorderWorkLong() {
    var recorder = TransportFeedbackRecorder()
    recorder.received(1, now: 0)
    recorder.received(32_000, now: 1)
    // Far behind: older than everything remembered.
    recorder.received(2, now: 2)
    var reports = 0
    while recorder.isDue, reports < 100 {
      _ = written { recorder.write(sender: 1, media: 2, into: $0) }
      reports += 1
    }
    #expect((1...10).contains(reports))
  }

  @Test func theClockOfReportsDoesNotWrap() throws {
    var clock = FeedbackClock()
    // The last one was overtaken.
    let times = [0xff_fffe, 1, 0xff_ffff].compactMap { clock.microseconds($0) }
    let first = try #require(times.first)
    #expect(times.map { $0 - first } == [0, 3 * 64_000, 64_000])
  }

  /// A step of 2^23 − 1 with each report once crashed the process after 17 million of them.
  @Test func aJumpOfTheReportsClockBeginsItAnew() throws {
    var clock = FeedbackClock()
    for jump in [157, 0x7f_ffff, 0x80_0000, 0xff_ff00] as [UInt32] {
      // The report after the jump counts as a first one.
      let references: [UInt32] = [5, 161, (161 + jump) & 0xff_ffff, 7]
      let times = references.map { clock.microseconds($0) }
      let expected: [Int64?] = [320_000, 10_304_000, nil, 448_000]
      #expect(times == expected, "\(jump)")
      clock = FeedbackClock()
    }
  }

  private struct Report {
    var statuses: [TransportFeedback.Status]
    var sender: UInt32
    var media: UInt32
    var referenceTime: UInt32
    var reportNumber: UInt8
  }

  private func read(_ hex: String) throws -> Report {
    try bytes(hex).withUnsafeBytes { packet in
      let feedback = try #require(TransportFeedback(parsing: packet))
      return Report(
        statuses: Array(feedback), sender: feedback.sender, media: feedback.media,
        referenceTime: feedback.referenceTime, reportNumber: feedback.reportNumber)
    }
  }
}

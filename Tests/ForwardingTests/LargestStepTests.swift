import CongestionControl
import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// Each value with state from a peer's numbers gets 16 million of the largest changes, and stays in range: a trap would
/// end all calls.
struct LargestStepTests {
  /// Unoptimised code takes too long for all of them.
  private static let steps = isRelease ? 1 << 24 : 1 << 16

  /// Most of the time it goes forward as fast as allowed, and sometimes back or nowhere.
  private static let directions = ["up", "down", "both", "none"]

  /// 24 hours of the worst reports in virtual time: the clock gets 20,000 a second, the limit of a receiver, each with
  /// the largest step that is taken. It reaches the end of its range and starts again, many times.
  @Test func theClockOfReportsStaysInReachFor24Hours() {
    var clock = FeedbackClock()
    var reference: UInt32 = 0
    var (beginnings, farthest): (Int, Int64) = (0, 0)
    for _ in 0..<(isRelease ? 24 * 3_600 * 20_000 : 1 << 20) {
      if let time = clock.microseconds(reference) { farthest = max(farthest, time) } else { beginnings += 1 }
      reference = (reference &+ UInt32(FeedbackClock.longestStep)) & 0xff_ffff
    }
    #expect(farthest <= FeedbackClock.reach * 64_000)
    #expect(beginnings > 20 || !isRelease)
  }

  /// The same reports to the estimator of a receiver's path, with the packets that they cover: as many as the receiver
  /// may send in 14 minutes, after which the process once crashed. The clock above shows that the state then starts
  /// again.
  @Test(arguments: directions) func aReceiversReportsLeaveTheEstimateInRange(direction: String) throws {
    var now = Instant(nanoseconds: 1_000_000_000)
    var downlink = Downlink(.packets, firstNumber: 0, now: now)
    let destination = SocketAddress(ipv4: 1, port: 1)
    var reference: UInt32 = 0
    var taken = 0
    var report = OnePacketReport()
    let step = UInt32(FeedbackClock.longestStep)
    for i in 0..<Self.steps / 4 {
      // Every receiver that gets this many packets a second may report as many.
      now = now.advanced(by: .microseconds(50))
      let number = downlink.nextNumber
      downlink.sent(length: 65_507, to: destination, kind: .video, isNumbered: true, now: now)
      switch direction {
      case "up": reference = reference &+ step
      case "down": reference = reference &- step
      case "both": reference = i % 2 == 0 ? reference &+ step : reference &- step
      // All packets arrived at the same time.
      default: break
      }
      let delta: Int16 = direction == "none" ? 0 : i % 4 < 2 ? .max : .min
      report.fill(number: number, reference: reference & 0xff_ffff, delta: delta)
      let isTaken = report.withUnsafeBytes { bytes in
        TransportFeedback(parsing: bytes).map { downlink.received($0, now: now) } ?? false
      }
      if isTaken { taken += 1 }
      if i % 1_024 == 0 {
        downlink.estimator.demand = RateDemand(allocated: .max >> 16, nextStep: .max >> 16, wished: .max >> 16)
        downlink.estimator.tick(now: now.microseconds)
        if let order = downlink.estimator.probe(now: now.microseconds) {
          downlink.probe = RunningProbe(order, now: now)
        }
      }
    }
    #expect(taken > Self.steps / 8)
    #expect((60_000...20_000_000).contains(downlink.rate))
  }

  /// Reports whose clock jumps by more are refused and leave no state.
  @Test func aJumpOfTheClockIsRefused() throws {
    var now = Instant(nanoseconds: 1_000_000_000)
    var downlink = Downlink(.packets, firstNumber: 0, now: now)
    var report = OnePacketReport()
    var refused = 0
    for i in 0..<(1 << 18) {
      now = now.advanced(by: .microseconds(50))
      downlink.sent(length: 1_200, to: SocketAddress(ipv4: 1, port: 1), kind: .video, isNumbered: true, now: now)
      report.fill(number: UInt16(truncatingIfNeeded: i), reference: UInt32(i) &* 0x7f_ffff & 0xff_ffff, delta: .max)
      let isTaken = report.withUnsafeBytes { downlink.received(TransportFeedback(parsing: $0)!, now: now) }
      if !isTaken { refused += 1 }
    }
    // Every second one restarts the clock.
    #expect(refused >= 1 << 17)
    #expect((60_000...20_000_000).contains(downlink.rate))
  }

  /// RTP numbers and timestamps, through everything that keeps them for a stream.
  @Test func aPublishersNumbersLeaveItsStreamInRange() {
    var unwrapper = SequenceUnwrapper()
    var window = ReplayWindow()
    var nacks = NackGenerator()
    var statistics = ReceptionStatistics()
    var rates = LayerRates()
    var clock = LayerClock()
    var now = Instant(nanoseconds: 1_000_000_000)
    var (number, timestamp): (UInt16, UInt32) = (0, 0)
    for i in 0..<Self.steps {
      now = now.advanced(by: .microseconds(50))
      let highest = unwrapper.highest
      let index = unwrapper.unwrap(number)
      if case .new = window.arrival(of: index) { window.record(index) }
      if let highest, index > highest + 1 { _ = nacks.jumped(from: highest, to: index, now: now) }
      statistics.received(index, timestamp: timestamp, arrival: now.ticks(48_000))
      rates.add(1_500, present: .max, timestamp: timestamp, now: now)
      clock.began(index, timestamp: timestamp, of: i % 3, at: now)
      number = number &+ (i % 8 == 7 ? 200 : 32_767)
      timestamp = timestamp &+ (i % 3 == 0 ? 0x7fff_ffff : 0x8000_0000)
      guard i % 256 == 0 else { continue }
      statistics.received((NTPTimestamp(rawValue: i % 512 == 0 ? .max : 0), .max, now))
      let block = statistics.report(ssrc: 1, now: now)
      #expect(block?.fractionLost ?? 0 <= 255)
      var missing = InlineArray<256, UInt16>(repeating: 0)
      _ = nacks.takeDue(now, roundTrip: .seconds(100), into: missing.mutableSpan)
      _ = clock.difference(from: 0, to: 2)
    }
    // At most 32,767 for each step; the index has 64 bits.
    #expect(unwrapper.highest ?? .max <= 65_536 + UInt64(Self.steps) * 32_767)
    #expect(rates[0] >= 0)
  }

  /// A source that jumps with each packet moves a slot's number by one each time, so the 48 bits of an SRTP index (RFC
  /// 3711 section 3.3.1) last for 100 years of 20,000 packets a second, and for 300,000 of the largest gaps.
  @Test(arguments: [201, 32_767] as [UInt64]) func aSourcesJumpsDoNotUseUpASlotsNumbers(step: UInt64) {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 20, alignment: 8)
    defer { bytes.deallocate() }
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 0, timestamp: 0, ssrc: 1, into: bytes)
    let header = RTPHeader(parsing: bytes.bytes)!
    var slot = SourceSwitch(first: 0)
    let now = Instant(nanoseconds: 0)
    var index: UInt64 = 65_536
    var last: UInt64 = 65_535
    var (farthest, beginnings): (UInt64, Int) = (0, 0)
    for i in 0..<Self.steps {
      let packet = Packet(base: bytes.baseAddress!, length: 20, header: header, index: index)
      var numbers = slot.map(packet)
      if numbers == nil {
        beginnings += 1
        slot.start(packet, as: .newSource, clockRate: 90_000, now: now)
        numbers = slot.map(packet)
      }
      if let numbers {
        farthest = max(farthest, numbers.index - last)
        last = numbers.index
        slot.sent(numbers, now: now)
      }
      index &+= i % 16 == 0 ? 150 : step
    }
    #expect(farthest <= SourceSwitch.longestGap + 1)
    #expect(beginnings > Self.steps / 2)
    #expect(last - 65_535 <= 2 * UInt64(Self.steps) + SourceSwitch.unusedNumbers)
  }

  /// Frame numbers of a stream with dependency descriptors: each is a key frame as far ahead as possible.
  @Test func frameNumbersStayInRange() throws {
    let stream = try RecordedStream(named: RecordedStream.names[1])
    let (key, structure) = try #require(stream.frames.first { $0.frame.isKeyFrame })
    var numbers = FrameNumbers()
    var frame = key
    var selector = FrameSelector(at: frame, target: 0)
    var admitted = 0
    for i in 0..<Self.steps / 4 {
      if i % 2 == 0 { numbers.begin(frame, structure, isSameTrack: i % 4 == 0) }
      numbers.sent(frame, structure)
      if selector.admits(frame, wanted: i % 3, structure) { admitted += 1 }
      frame.number &+= [32_767, 98_303, 65_536, 1][i & 3]
      frame.timestamp &+= 0x8000_0000
    }
    #expect(admitted > Self.steps / 8)
  }

  /// The transport-wide numbers of a publisher: every packet jumps, at times that jump as well.
  @Test func theRecorderOfArrivalsStaysInRange() {
    var reports = ArrivalReports(extensionID: 1)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_000, alignment: 8)
    defer { buffer.deallocate() }
    var now = Instant(nanoseconds: 1_000_000_000)
    var number: UInt16 = 0
    for i in 0..<Self.steps {
      now = now.advanced(by: i % 64 == 0 ? .seconds(3_600) : .microseconds(1))
      _ = reports.received(number, of: .max, length: 65_535, now: now)
      number = number &+ (i % 5 == 0 ? 1 : 32_767)
      guard reports.isDue(now), i % 32 == 0 else { continue }
      for _ in 0..<ArrivalReports.mostAtOnce where reports.write(sender: 1, into: buffer) > 0 {}
      reports.endReports(now: now)
    }
    #expect(reports.deadline != nil)
  }

  /// Audio levels, quality and loudness, as claimed by a peer.
  @Test func levelsAndReportedQualityStayInRange() {
    var activity = SpeechActivity()
    var quality = QualityMeter()
    var now = Instant(nanoseconds: 1_000_000_000)
    var levels = 0
    for i in 0..<Self.steps / 4 {
      now = now.advanced(by: i % 2 == 0 ? .seconds(15) : .milliseconds(1))
      activity.heard(level: i % 2 == 0 ? 0 : .max, now: now)
      if i % 16 == 0 { _ = activity.scores(at: now) }
      quality.reported(fractionLost: .max, of: .max, jitter: .nanoseconds(Int64.max))
      if quality.judge(roundTrip: .nanoseconds(Int64.max), octets: UInt64(i) &* (.max / 3), now: now) != nil {
        levels += 1
      }
    }
    #expect(levels >= 1)
    #expect(quality.level == 0)
  }

  /// REMB reports up to 2^58 bit/s, and zero.
  @Test func reportedRatesLeaveTheEstimateInRange() throws {
    var now = Instant(nanoseconds: 1_000_000_000)
    var downlink = Downlink(.rate, firstNumber: 0, now: now)
    let remb: [UInt8] =
      [0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0] + Array("REMB".utf8) + [1, 0xff, 0xff, 0xff, 0, 0, 0, 9]
    let highest: Int = remb.withUnsafeBytes { bytes in
      var compound = RTCPCompound(bytes)
      guard case .receiverRate(let rate) = compound.next() else { return 0 }
      return rate
    }
    try #require(highest > 1 << 57)
    for i in 0..<Self.steps / 4 {
      now = now.advanced(by: .milliseconds(20))
      downlink.received(rate: [highest, 0, 1, highest][i & 3], now: now)
      if i % 8 == 0 { downlink.received(lost: 1, now: now) }
      downlink.estimator.demand = RateDemand(allocated: .max >> 16, nextStep: .max >> 16, wished: .max >> 16)
      downlink.estimator.tick(now: now.microseconds)
    }
    #expect((60_000...20_000_000).contains(downlink.rate))
  }
}

/// A report on one packet.
private struct OnePacketReport {
  private var bytes: [UInt8] =
    [0x8f, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2] + [0, 0, 0, 1] + [0, 0, 0, 0] + [0xe0, 0, 0, 0, 0, 0, 0, 0]

  mutating func fill(number: UInt16, reference: UInt32, delta: Int16) {
    bytes.withUnsafeMutableBytes { bytes in
      bytes.store(number, at: 12)
      bytes.store(reference << 8, at: 16)
      bytes.store(UInt16(bitPattern: delta), at: 22)
    }
  }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result { bytes.withUnsafeBytes(body) }
}

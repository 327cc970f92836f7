import CongestionControl
import MediaModel
import Octets
import RTP

@testable import Forwarding

/// Values with state from a peer's numbers, for as many steps as the input says: a sum that grows with each step traps
/// only after millions of them. Each part is one run: its first byte chooses the value and the number of steps, and the
/// bytes after the fourth are the sizes of steps, repeated.
func driveEstimators(_ input: UnsafeMutableRawBufferPointer) {
  let estimators = Estimators()
  // An input takes at most a second.
  var left = 1 << 20
  for part in input.parts where part.count > 4 {
    let steps = 1 << Int(part[0] >> 4)
    let values = Array(part.dropFirst(4))
    for step in 0..<min(steps, left) {
      func byte(_ place: Int) -> UInt64 { UInt64(values[(step &* 4 &+ place) % values.count]) }
      let value = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3)
      estimators.step(part[0] & 15, UInt32(truncatingIfNeeded: value))
    }
    left -= min(steps, left)
  }
}

private final class Estimators {
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var downlinks: [Downlink]
  private var reference: UInt32 = 0
  private var number: UInt16 = 0
  private var timestamp: UInt32 = 0
  private var unwrapper = SequenceUnwrapper()
  private var window = ReplayWindow()
  private var nacks = NackGenerator()
  private var statistics = ReceptionStatistics()
  private var rates = LayerRates()
  private var clock = LayerClock()
  private var arrivals = ArrivalReports(extensionID: 1)
  private var quality = QualityMeter()
  private var activity = SpeechActivity()
  private var slot = SourceSwitch(first: 1)
  private var state = SlotState.awaiting(rank: 0, next: nil, .newSource)
  private var last: UInt64 = 65_536
  private let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_000, alignment: 8)
  private let destination = SocketAddress(ipv4: 1, port: 1)

  init() {
    let now = now
    downlinks = [RateFeedback.packets, .rate].map { Downlink($0, firstNumber: 0, now: now) }
  }

  deinit { bytes.deallocate() }

  func step(_ kind: UInt8, _ value: UInt32) {
    now = now.advanced(by: .microseconds(50))
    switch kind {
    case 0: now = now.advanced(by: .microseconds(Int64(value)))
    case 1, 2: report(value, delta: kind == 1 ? .max : .min)
    case 3:
      downlinks[1].received(rate: Int(value & 0x3ffff) << Int(min(40, value >> 26)), now: now)
      downlinks[1].received(lost: Double(value & 255) / 256, now: now)
      downlinks[1].estimator.tick(now: now.microseconds)
    case 4: receive(value)
    case 5: send(value)
    case 6:
      _ = arrivals.received(UInt16(truncatingIfNeeded: value), of: value, length: 65_535, now: now)
      guard arrivals.isDue(now) else { return }
      for _ in 0..<ArrivalReports.mostAtOnce { sum &+= arrivals.write(sender: 1, into: bytes) }
      arrivals.endReports(now: now)
    case 7: statistics.received((NTPTimestamp(rawValue: UInt64(value) << 32 | UInt64(value)), value, now))
    case 8:
      quality.reported(fractionLost: .max, of: value, jitter: .nanoseconds(Int64(value) << 30))
      sum &+=
        quality.judge(roundTrip: .nanoseconds(Int64(value) << 30), octets: UInt64(value) << 32, now: now)?.bitrate ?? 0
    case 9:
      activity.heard(level: UInt8(truncatingIfNeeded: value), now: now)
      sum &+= activity.scores(at: now).long > 1 ? 1 : 0
    default: downlinks[0].estimator.tick(now: now.microseconds)
    }
  }

  /// A packet to a receiver, and its report on it.
  private func report(_ step: UInt32, delta: Int16) {
    let sent = downlinks[0].nextNumber
    downlinks[0].sent(length: 1_200, to: destination, kind: .video, isNumbered: true, now: now)
    reference = (reference &+ step) & 0xff_ffff
    let head: [UInt8] = [0x8f, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 0]
    let report = bytes.part(0..<head.count)
    report.copyBytes(from: head)
    report.store(sent, at: 12)
    report.store(reference << 8, at: 16)
    report.store(UInt16(bitPattern: delta), at: 22)
    guard let feedback = TransportFeedback(parsing: UnsafeRawBufferPointer(report)) else {
      fatalError("it cannot be read")
    }
    sum &+= downlinks[0].received(feedback, now: now) ? 1 : 0
    precondition(downlinks[0].rate >= 60_000 && downlinks[0].rate <= 20_000_000)
  }

  /// A publisher's packet.
  private func receive(_ step: UInt32) {
    number &+= UInt16(truncatingIfNeeded: step)
    timestamp &+= step
    let highest = unwrapper.highest
    let index = unwrapper.unwrap(number)
    if case .new = window.arrival(of: index) { window.record(index) }
    if let highest, index > highest &+ 1 { _ = nacks.jumped(from: highest, to: index, now: now) }
    statistics.received(index, timestamp: timestamp, arrival: now.ticks(90_000))
    sum &+= Int(statistics.report(ssrc: 1, now: now)?.fractionLost ?? 0)
    rates.add(Int(step & 0x7ff), present: step, timestamp: timestamp, now: now)
    clock.began(index, timestamp: timestamp, of: Int(step % 3), at: now)
    var missing = InlineArray<256, UInt16>(repeating: 0)
    sum &+= nacks.takeDue(now, roundTrip: .microseconds(Int64(step)), into: missing.mutableSpan)
  }

  /// A slot's packet from a source. Two consecutive packets have close numbers.
  private func send(_ step: UInt32) {
    last &+= UInt64(step & 0x7fff)
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 0, timestamp: step, ssrc: 1, into: bytes)
    guard let base = bytes.baseAddress, let header = RTPHeader(parsing: bytes.bytes) else { return }
    let packet = Packet(base: base, length: 12, header: header, index: last)
    let before = slot.newest
    if state.begin() != nil || slot.map(packet) == nil && slot.hasJumped(to: last) {
      slot.start(packet, as: .newSource, clockRate: 90_000, now: now)
    }
    if step >> 31 != 0 { slot.omit(last) }
    guard let numbers = slot.map(packet) else { return }
    slot.sent(numbers, now: now)
    precondition(abs(SequenceNumber.distance(from: before, to: numbers.sequenceNumber)) <= 1_024)
  }
}

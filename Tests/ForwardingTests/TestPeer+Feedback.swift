import MediaModel
import RTP

@testable import Forwarding

/// The transport-wide feedback of a receiver: a report every 50 ms, like browsers.
struct TestFeedback {
  var recorder = TransportFeedbackRecorder()
  /// The received numbers, in order, with the SSRC of each packet.
  var arrivals: [(number: UInt16, ssrc: UInt32)] = []
  /// Whether reports are lost, or never sent.
  var isSilent = false
}

/// The estimate of a receiver without reports on packets, from the times at which packets left and arrived: a queue of over 60 ms makes it 85 % of what
/// arrives, otherwise it rises by 8 % a second to 1.5 times that (libwebrtc's `AimdRateControl`).
struct TestRateEstimate {
  private var bits = 0
  private var delays: [Double] = []
  private var base = Double.infinity
  private var reports = 0
  private(set) var rate = 0

  /// - Parameter left: the time at which the packet left, modulo 64 s.
  mutating func received(_ bytes: Int, left: UInt32, now: Instant) {
    bits += 8 * bytes
    let delay = Double((now.ticks(1 << 18) &- left) & 0xffffff) / Double(1 << 18)
    delays.append(delay)
    base = min(base, delay)
  }

  /// Reports every 500 ms. Returns false as long as there is no estimate.
  mutating func update() -> Bool {
    guard !delays.isEmpty else { return rate > 0 }
    reports += 1
    let arrived = 2 * bits
    let isQueued = delays.reduce(0, +) / Double(delays.count) > base + 0.06
    (bits, delays) = (0, [])
    if isQueued {
      rate = arrived / 100 * 85
    } else if rate == 0 {
      if reports > 6 { rate = arrived }
    } else {
      rate = min(rate / 100 * 104, max(rate, arrived / 2 * 3 + 10_000))
    }
    return rate > 0
  }
}

extension TestPeer {
  /// Offers an estimate of the rate on the slots for video; the caller configures the SFU.
  func estimateRate() {
    configuration.extensions.sendTime = UInt8(9 + configuration.participant % 2)
    for i in configuration.slots.indices where configuration.slots[i].kind == .video {
      configuration.slots[i].feedback = .rate
    }
    rateEstimate = TestRateEstimate()
  }

  func noteSendTime(_ extensions: [UInt8: [UInt8]], bytes: Int, now: Instant) {
    guard rateEstimate != nil, let time = extensions[configuration.extensions.sendTime], time.count == 3 else { return }
    rateEstimate?.received(bytes, left: time.reduce(0) { $0 << 8 | UInt32($1) }, now: now)
  }

  /// The receiver's estimate, as REMB (draft-alvestrand-rmcat-remb-03 section 2.2).
  func sendRate() {
    guard rateEstimate?.update() ?? false, let rate = rateEstimate?.rate else { return }
    let exponent = max(0, 14 - rate.leadingZeroBitCount + 32)
    let mantissa = rate >> exponent
    let fields: [UInt8] = [
      1, UInt8(exponent << 2 | mantissa >> 16), UInt8(mantissa >> 8 & 255), UInt8(mantissa & 255), 0, 0, 0, 9,
    ]
    sendRTCP([0x8f, 206, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0] + Array("REMB".utf8) + fields)
  }

  /// Offers transport-wide feedback on all slots; the caller configures the SFU.
  func reportArrivals() {
    configuration.extensions.transportSequence = UInt8(13 + configuration.participant % 2)
    for i in configuration.slots.indices { configuration.slots[i].feedback = .packets }
  }

  func noteNumber(of header: RTPHeader, _ extensions: [UInt8: [UInt8]], now: Instant) {
    guard let number = extensions[configuration.extensions.transportSequence], number.count == 2 else { return }
    let value = UInt16(number[0]) << 8 | UInt16(number[1])
    feedback.arrivals.append((value, header.ssrc))
    feedback.recorder.received(value, now: Int64(now.nanoseconds / 1_000))
  }

  func sendFeedback() {
    guard !feedback.isSilent else { return }
    while feedback.recorder.isDue {
      var bytes = [UInt8](repeating: 0, count: 1_000)
      let length = bytes.withUnsafeMutableBytes { feedback.recorder.write(sender: 1, media: 1, into: $0) }
      guard length > 0 else { return }
      sendRTCP(Array(bytes[..<length]))
    }
  }
}

import MediaModel
import RTP

/// An instant on three clocks: the sender's, the stream's, and ours when its report came.
typealias ReportedTime = (ntp: NTPTimestamp, rtp: UInt32, at: Instant)

/// The data of a receiver report on one stream (RFC 3550 6.4.1, A.3, A.8).
struct ReceptionStatistics {
  private var base: UInt64?
  private var highest: UInt64 = 0
  private var received: UInt64 = 0
  private var expectedBefore: UInt64 = 0
  private var receivedBefore: UInt64 = 0
  /// The arrival of the last packet minus its timestamp, in the stream's clock.
  private(set) var transit: UInt32 = 0
  /// In sixteenths of the stream's clock.
  private var jitter: UInt32 = 0
  /// The last sender report: its NTP and RTP timestamps, and its arrival.
  private(set) var lastReport: ReportedTime?

  /// A packet of the stream itself, not of RTX, with its arrival in the stream's clock.
  mutating func received(_ index: UInt64, timestamp: UInt32, arrival: UInt32) {
    let transit = arrival &- timestamp
    if base == nil {
      base = index
    } else {
      let distance = Int32(bitPattern: transit &- self.transit).magnitude
      // RFC 3550 A.8 in integers. A jump of the sender's clock is no jitter.
      if distance < 0x100_0000 { jitter = jitter &+ distance &- ((jitter &+ 8) >> 4) }
    }
    self.transit = transit
    received &+= 1
    highest = max(highest, index)
  }

  mutating func received(_ report: ReportedTime) { lastReport = report }

  /// The block for the next report; nil before the first packet. In range: differences of numbers that are not negative.
  mutating func report(ssrc: UInt32, now: Instant) -> ReportBlock? {
    guard let base else { return nil }
    let expected = highest &- base &+ 1
    let lost = Int64(clamping: expected) - Int64(clamping: received)
    let expectedNow = expected &- expectedBefore
    let lostNow = Int64(clamping: expectedNow) - Int64(clamping: received &- receivedBefore)
    expectedBefore = expected
    receivedBefore = received
    let fraction = expectedNow == 0 || lostNow <= 0 ? 0 : min(255, UInt64(lostNow) &* 256 / expectedNow)
    let delay = lastReport.map { UInt64(max(0, $0.at.duration(to: now).nanoseconds)) } ?? 0
    return ReportBlock(
      ssrc: ssrc, fractionLost: UInt8(fraction), cumulativeLost: Int32(clamping: lost),
      highestSequence: UInt32(truncatingIfNeeded: highest &- 65_536), jitter: jitter >> 4,
      lastSenderReport: lastReport?.ntp.compact ?? 0,
      delaySinceLastSenderReport: NTPTimestamp.compact(ofNanoseconds: delay))
  }
}

import RTP
import Testing

struct NTPTimestampTests {
  @Test func convertsNanoseconds() {
    let time = NTPTimestamp(nanoseconds: 46_864_500_000_000)
    #expect(time.rawValue == 0xb710_8000_0000)
    #expect(time.nanoseconds == 46_864_500_000_000)
    #expect(time.compact == 0xb710_8000)
  }

  @Test func convertsDurations() {
    #expect(NTPTimestamp.compact(ofNanoseconds: 5_250_000_000) == 0x0005_4000)
    #expect(NTPTimestamp.nanoseconds(ofCompact: 0x0005_4000) == 5_250_000_000)
    #expect(NTPTimestamp.compact(ofNanoseconds: .max) == .max)
  }

  /// The example of RFC 3550 section 6.4.1, figure 2: 6.125 s.
  @Test func roundTripOfTheStandardsExample() {
    var block = ReportBlock.example
    block.lastSenderReport = 0xb705_2000
    block.delaySinceLastSenderReport = 0x0005_4000
    #expect(block.roundTrip(now: NTPTimestamp(rawValue: 0xb710_8000_0000)) == 6_125_000_000)
  }

  @Test func noRoundTripWithoutSenderReportOrWithALie() {
    var block = ReportBlock.example
    block.lastSenderReport = 0
    #expect(block.roundTrip(now: NTPTimestamp(rawValue: 0xb710_8000_0000)) == nil)
    block.lastSenderReport = 0xb711_0000
    #expect(block.roundTrip(now: NTPTimestamp(rawValue: 0xb710_8000_0000)) == nil)
  }
}

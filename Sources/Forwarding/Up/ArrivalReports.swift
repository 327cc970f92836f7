import MediaModel
import RTP

/// The transport-wide feedback for one publisher: when its packets arrived, including retransmissions and padding, and when
/// that is reported.
struct ArrivalReports {
  /// Reports take up to 5 % of the rate that they cover, at these intervals (libwebrtc's `RemoteEstimatorProxy`).
  static let shortest = Duration.milliseconds(50)
  static let longest = Duration.milliseconds(250)
  /// A report with IP, UDP and SRTCP, in bytes (from the same source).
  private static let length: UInt64 = 68
  /// The most reports at one time. One covers 400 numbers: only a sender that skips numbers needs more than two.
  static let mostAtOnce = 4

  /// The id of the header extension with the number.
  var extensionID: UInt8
  /// When the next report is due; nil if there is nothing to report.
  private(set) var deadline: Instant?
  /// The last packet's SSRC: a browser looks for one of its streams in each report.
  private(set) var media: UInt32 = 0
  private var recorder = TransportFeedbackRecorder()
  private var interval = ArrivalReports.shortest
  private var bytes: UInt64 = 0
  private var reportedAt: Instant?

  init(extensionID: UInt8) { self.extensionID = extensionID }

  /// Notes the arrival of a packet.
  /// - Returns: whether it will be reported.
  mutating func received(_ number: UInt16, of media: UInt32, length: Int, now: Instant) -> Bool {
    bytes &+= UInt64(length)
    self.media = media
    guard recorder.received(number, now: Int64(clamping: now.nanoseconds / 1_000)) else { return false }
    if deadline == nil { deadline = now.advanced(by: interval) }
    return true
  }

  /// Begins a round of reports if one is due: at most `mostAtOnce` calls of `write` follow, then `endReports`.
  func isDue(_ now: Instant) -> Bool { deadline.map { $0 <= now } ?? false }

  /// Writes a report of the round.
  /// - Parameter buffer: at least 1,000 bytes.
  /// - Returns: its length in bytes; 0 if nothing is left to report.
  mutating func write(sender: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    recorder.write(sender: sender, media: media, into: buffer)
  }

  /// The round is over. The rest waits for the next.
  mutating func endReports(now: Instant) {
    if let reportedAt, bytes > 0 {
      let elapsed = UInt64(clamping: reportedAt.duration(to: now).nanoseconds)
      let share = elapsed.multipliedReportingOverflow(by: 20 * Self.length)
      let nanoseconds = share.overflow ? .max : share.partialValue / bytes
      interval = min(max(.nanoseconds(Int64(clamping: nanoseconds)), Self.shortest), Self.longest)
    }
    reportedAt = now
    bytes = 0
    deadline = recorder.isDue ? now.advanced(by: interval) : nil
  }
}

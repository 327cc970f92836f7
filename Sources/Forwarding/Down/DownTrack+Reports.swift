import MediaModel
import RTP

extension DownTrack {
  /// Payload bytes since the last time.
  func takeOctets() -> UInt64 {
    let new = slot.pointee.stream.octetCount
    defer { measured.octets = new }
    return UInt64(new &- measured.octets)
  }

  /// Packets since the last time.
  func takePackets() -> UInt32 {
    let new = slot.pointee.stream.packetCount
    defer { measured.packets = new }
    return new &- measured.packets
  }

  /// The receiver reported on this stream. Returns the round trip from one of our sender reports to this report, less the receiver's delay; nil if it refers to
  /// another report.
  func received(_ block: ReportBlock, now: Instant) -> Duration? {
    isKnown = true
    slot.pointee.stream.midExtension = 0
    guard let sent = sentReport(block.lastSenderReport) else { return nil }
    let delay = NTPTimestamp.nanoseconds(ofCompact: block.delaySinceLastSenderReport)
    let time = sent.duration(to: now) - .nanoseconds(Int64(delay))  // in range: 46 bits
    return time >= .zero ? time : nil
  }

  /// When we sent the report that a receiver names by this value.
  private func sentReport(_ compact: UInt32) -> Instant? {
    if let lastReport, lastReport.compact == compact { return lastReport.at }
    if let reportBefore, reportBefore.compact == compact { return reportBefore.at }
    return nil
  }

  /// Writes a sender report that translates the source's times into this slot's. Returns false before the source has reported, and
  /// while it pauses.
  func writeSenderReport(_ now: Instant, into writer: inout RTCPWriter) -> Bool {
    guard let source, let encoding, slot.pointee.state.isRunning,
      let report = encoding.reception.pointee.statistics.lastReport, let offset = source.peer.clockOffset
    else { return false }
    let elapsed = UInt64(bitPattern: max(0, report.at.duration(to: now).nanoseconds))
    let ntp = NTPTimestamp(nanoseconds: report.ntp.nanoseconds &+ offset &+ elapsed)
    let ticks = now.ticks(source.clockRate) &- report.at.ticks(source.clockRate)
    reportBefore = lastReport
    lastReport = (ntp.compact, now)
    return writer.senderReport(
      ssrc: description.ssrc, ntp: ntp, rtpTimestamp: report.rtp &+ slot.pointee.sourceSwitch.timestampOffset &+ ticks,
      packetCount: slot.pointee.stream.packetCount, octetCount: slot.pointee.stream.octetCount)
  }
}

import Octets

/// Appends RTCP packets to a caller's buffer. Each method writes one whole packet, or writes nothing and returns false if it does not
/// fit.
package struct RTCPWriter {
  private let buffer: UnsafeMutableRawBufferPointer
  /// Bytes written so far.
  package private(set) var length = 0

  package init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  /// SR (RFC 3550 section 6.4.1). At most 31 `reports`.
  @discardableResult
  package mutating func senderReport(
    ssrc: UInt32, ntp: NTPTimestamp, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32,
    reports: Span<ReportBlock> = .init()
  ) -> Bool {
    guard
      let start = begin(RTCPType.senderReport, reports.count, bytes: 24 + reports.count * ReportBlock.length)
    else { return false }
    buffer.store(ssrc, at: start)
    buffer.store(ntp.rawValue, at: start + 4)
    buffer.store(rtpTimestamp, at: start + 12)
    buffer.store(packetCount, at: start + 16)
    buffer.store(octetCount, at: start + 20)
    write(reports, at: start + 24)
    return true
  }

  /// RR (RFC 3550 section 6.4.2). At most 31 `reports`.
  @discardableResult
  package mutating func receiverReport(ssrc: UInt32, reports: Span<ReportBlock> = .init()) -> Bool {
    guard
      let start = begin(RTCPType.receiverReport, reports.count, bytes: 4 + reports.count * ReportBlock.length)
    else { return false }
    buffer.store(ssrc, at: start)
    write(reports, at: start + 4)
    return true
  }

  /// SDES with one chunk of one item, CNAME (RFC 3550 section 6.5.1): 1 to 255 bytes.
  @discardableResult
  package mutating func sourceDescription(ssrc: UInt32, cname: Span<UInt8>) -> Bool {
    guard (1...255).contains(cname.count) else { return false }
    // SSRC, type, length, name and at least one zero byte that ends the chunk, up to a word.
    let bytes = (4 + 2 + cname.count + 1 + 3) & ~3
    guard let start = begin(RTCPType.sourceDescription, 1, bytes: bytes) else { return false }
    buffer.store(ssrc, at: start)
    buffer[start + 4] = 1
    buffer[start + 5] = UInt8(cname.count)
    for i in cname.indices { buffer[start + 6 + i] = cname[i] }
    for i in start + 6 + cname.count..<start + bytes { buffer[i] = 0 }
    return true
  }

  /// BYE of one SSRC (RFC 3550 section 6.6).
  @discardableResult
  package mutating func bye(ssrc: UInt32) -> Bool {
    guard let start = begin(RTCPType.bye, 1, bytes: 4) else { return false }
    buffer.store(ssrc, at: start)
    return true
  }

  /// Generic NACK (RFC 4585 section 6.2.1). `missing` holds at least one number, oldest first, so that neighbours share a pair.
  @discardableResult
  package mutating func nack(sender: UInt32, media: UInt32, missing: Span<UInt16>) -> Bool {
    guard !missing.isEmpty else { return false }
    let header = length
    guard let start = begin(RTCPType.transportFeedback, 1, bytes: 8) else { return false }
    buffer.store(sender, at: start)
    buffer.store(media, at: start + 4)
    var i = 0
    while i < missing.count {
      let pid = missing[i]
      var mask: UInt16 = 0
      i += 1
      while i < missing.count, (1...16).contains(missing[i] &- pid) {
        mask |= 1 << (missing[i] &- pid - 1)
        i += 1
      }
      guard length + 4 <= buffer.count, length - header < 4 * 65_535 else {
        length = header
        return false
      }
      buffer.store(pid, at: length)
      buffer.store(mask, at: length + 2)
      length += 4
    }
    buffer.store(UInt16((length - header) / 4 - 1), at: header + 2)
    return true
  }

  /// PLI (RFC 4585 section 6.3.1).
  @discardableResult
  package mutating func pictureLoss(sender: UInt32, media: UInt32) -> Bool {
    guard let start = begin(RTCPType.payloadFeedback, 1, bytes: 8) else { return false }
    buffer.store(sender, at: start)
    buffer.store(media, at: start + 4)
    return true
  }

  /// FIR of one SSRC (RFC 5104 section 4.3.1); `sequence` rises by one with each new request.
  @discardableResult
  package mutating func fullIntraRequest(sender: UInt32, media: UInt32, sequence: UInt8) -> Bool {
    guard let start = begin(RTCPType.payloadFeedback, 4, bytes: 16) else { return false }
    buffer.store(sender, at: start)
    buffer.store(UInt32(0), at: start + 4)
    buffer.store(media, at: start + 8)
    buffer.store(UInt32(sequence) << 24, at: start + 12)
    return true
  }

  /// Writes a packet's first word; `bytes`, a multiple of 4, follow it. Returns the position; nil if it does not fit or `count` has more
  /// than 5 bits.
  private mutating func begin(_ type: UInt8, _ count: Int, bytes: Int) -> Int? {
    guard count <= 31, length + 4 + bytes <= buffer.count else { return nil }
    buffer[length] = 0x80 | UInt8(count)
    buffer[length + 1] = type
    buffer.store(UInt16(bytes / 4), at: length + 2)
    let start = length + 4
    length = start + bytes
    return start
  }

  private func write(_ reports: Span<ReportBlock>, at offset: Int) {
    for i in reports.indices { reports[i].write(into: buffer, at: offset + i * ReportBlock.length) }
  }
}

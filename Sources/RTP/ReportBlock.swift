import Octets

/// How one stream arrives (RFC 3550 section 6.4.1).
package struct ReportBlock: Equatable, Sendable {
  package var ssrc: UInt32
  /// Since the last report, in 1/256.
  package var fractionLost: UInt8
  /// 24 bits, signed: duplicates make it negative.
  package var cumulativeLost: Int32
  /// Cycles in the upper half, sequence number in the lower.
  package var highestSequence: UInt32
  /// In units of the stream's clock.
  package var jitter: UInt32
  /// `NTPTimestamp.compact` of the last sender report; 0 if there was none.
  package var lastSenderReport: UInt32
  /// Since then, in 1/65,536 s.
  package var delaySinceLastSenderReport: UInt32

  package static let length = 24

  package init(
    ssrc: UInt32, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32, jitter: UInt32,
    lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.cumulativeLost = cumulativeLost
    self.highestSequence = highestSequence
    self.jitter = jitter
    self.lastSenderReport = lastSenderReport
    self.delaySinceLastSenderReport = delaySinceLastSenderReport
  }

  /// Nanoseconds between sending the report's SR and its arrival here at `now`, less the peer's delay (RFC 3550 section 6.4.1).
  /// nil without an SR, or if the peer's numbers make it negative or longer than a minute.
  package func roundTrip(now: NTPTimestamp) -> UInt64? {
    guard lastSenderReport != 0 else { return nil }
    let units = now.compact &- lastSenderReport &- delaySinceLastSenderReport
    guard units < 60 << 16 else { return nil }
    return NTPTimestamp.nanoseconds(ofCompact: units)
  }

  init(_ bytes: RawSpan, at offset: Int) {
    ssrc = bytes.uint32(at: offset)
    fractionLost = bytes[offset + 4]
    cumulativeLost = Int32(bitPattern: bytes.uint24(at: offset + 5) << 8) >> 8
    highestSequence = bytes.uint32(at: offset + 8)
    jitter = bytes.uint32(at: offset + 12)
    lastSenderReport = bytes.uint32(at: offset + 16)
    delaySinceLastSenderReport = bytes.uint32(at: offset + 20)
  }

  func write(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) {
    let lost = UInt32(bitPattern: min(max(cumulativeLost, -0x80_0000), 0x7f_ffff)) & 0xff_ffff
    bytes.store(ssrc, at: offset)
    bytes.store(UInt32(fractionLost) << 24 | lost, at: offset + 4)
    bytes.store(highestSequence, at: offset + 8)
    bytes.store(jitter, at: offset + 12)
    bytes.store(lastSenderReport, at: offset + 16)
    bytes.store(delaySinceLastSenderReport, at: offset + 20)
  }
}

/// The blocks of one report, at most 31; a view.
package struct ReportBlocks: Sequence, IteratorProtocol {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// `bytes` is a whole number of blocks.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  package mutating func next() -> ReportBlock? {
    guard position + ReportBlock.length <= bytes.count else { return nil }
    defer { position += ReportBlock.length }
    return ReportBlock(bytes.bytes, at: position)
  }
}

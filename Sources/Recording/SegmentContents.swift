import Octets

/// The records behind a segment's header, opened, as far as they can be trusted: all up to the first that does not fit.
package struct SegmentContents: Sendable {
  package enum Ending: Hashable, Sendable {
    case closed(SegmentEnd.Reason)
    /// The last record is missing: it was not finished.
    case open
    /// The rest is not a record, or contradicts those before it.
    case damaged
  }

  /// The most records of a segment, those of unknown types included.
  package static let maximumRecords = 65_536
  package static let maximumStreams: UInt8 = 64

  package private(set) var records: [SegmentRecord] = []
  package private(set) var ending = Ending.open
  /// The bytes of all records that fit.
  package private(set) var byteCount = 0
  /// All types count.
  package private(set) var recordCount = 0

  private var clocks: [StreamClock?] = Array(repeating: nil, count: Int(maximumStreams))
  /// - Parameter start: of the segment, from its header.
  package init(parsing contents: RawSpan, start: Int64) {
    var offset = 0
    while offset < contents.byteCount {
      guard let next = parse(contents, at: offset) else {
        ending = .damaged
        break
      }
      offset = next
      byteCount = next
    }
    setTimes(start: start)
  }

  /// - Returns: where the next record begins; nil if the one at `offset` does not fit.
  private mutating func parse(_ contents: RawSpan, at offset: Int) -> Int? {
    guard ending == .open, recordCount < Self.maximumRecords, contents.byteCount - offset >= 4 else { return nil }
    let body = offset + 4
    // In range: a length has 24 bits.
    let end = body + Int(contents.uint24(at: offset + 1))
    guard end <= contents.byteCount else { return nil }
    if contents[offset] == SegmentRecordType.frame {
      guard end >= body + 10, isAnnounced(contents[body]) else { return nil }
      records.append(.frame(RecordedFrame(contents, body: body, end: end)))
    } else {
      guard add(contents[offset], contents.extracting(body..<end)) else { return nil }
    }
    recordCount += 1
    return end
  }

  /// Adds a record that is no frame, unless its type is unknown.
  /// - Returns: whether it fits.
  private mutating func add(_ type: UInt8, _ body: RawSpan) -> Bool {
    switch type {
    case SegmentRecordType.stream:
      guard let stream = RecordedStream(body), stream.index < Self.maximumStreams, !isAnnounced(stream.index)
      else { return false }
      clocks[Int(stream.index)] = StreamClock(rate: stream.clockRate)
      records.append(.stream(stream))
    case SegmentRecordType.clock:
      guard let clock = RecordedClock(body), isAnnounced(clock.index) else { return false }
      clocks[Int(clock.index)]?.note(clock)
      records.append(.clock(clock))
    case SegmentRecordType.gap:
      guard let gap = RecordedGap(body), gap.index.map(isAnnounced) ?? true else { return false }
      records.append(.gap(gap))
    case SegmentRecordType.mark:
      guard let mark = RecordedMark(body), mark.index.map(isAnnounced) ?? true else { return false }
      records.append(.mark(mark))
    case SegmentRecordType.end:
      guard body.byteCount == 13, body.uint32(at: 1) == recordCount, let end = SegmentEnd(body) else { return false }
      records.append(.end(end))
      ending = .closed(end.reason)
    default: break
    }
    return true
  }

  private func isAnnounced(_ index: UInt8) -> Bool { index < Self.maximumStreams && clocks[Int(index)] != nil }

  /// A sender's report counts for frames before it, too, so this comes after all records are read.
  private mutating func setTimes(start: Int64) {
    for place in records.indices {
      switch records[place] {
      case .clock(let clock): clocks[Int(clock.index)]?.pass(clock)
      case .frame(var frame):
        // In range: times are below 2^53 microseconds, an arrival below 2^32 milliseconds.
        frame.time = clocks[Int(frame.index)]?.time(of: frame.timestamp) ?? start + Int64(frame.arrival) * 1_000
        records[place] = .frame(frame)
      default: break
      }
    }
  }
}

private enum SegmentRecordType {
  static let stream: UInt8 = 1
  static let frame: UInt8 = 2
  static let clock: UInt8 = 3
  static let gap: UInt8 = 4
  static let mark: UInt8 = 5
  static let end: UInt8 = 127
}

/// The index that means all streams.
private let allStreams: UInt8 = 255

extension RecordedStream {
  /// nil if the record does not have these fields.
  fileprivate init?(_ body: RawSpan) {
    guard body.byteCount == 13, body[1] > 0, body.uint32(at: 5) > 0 else { return nil }
    self.init(
      index: body[0], n: body[1], source: body[2], codec: body[3], layer: body[4], clockRate: body.uint32(at: 5),
      epoch: body.uint32(at: 9))
  }
}

extension RecordedFrame {
  /// - Parameter body: where the record's fields begin. There are 10 bytes of them.
  fileprivate init(_ contents: RawSpan, body: Int, end: Int) {
    self.init(
      index: contents[body], flags: contents[body + 1], timestamp: contents.uint32(at: body + 2),
      arrival: contents.uint32(at: body + 6), time: 0, range: body + 10..<end)
  }
}

extension RecordedClock {
  /// nil if the record does not have these fields.
  fileprivate init?(_ body: RawSpan) {
    guard body.byteCount == 14, let source = Source(rawValue: body[1]), let time = body.segmentTime(at: 6) else {
      return nil
    }
    self.init(index: body[0], source: source, timestamp: body.uint32(at: 2), time: time)
  }
}

extension RecordedGap {
  /// nil if the record does not have these fields.
  fileprivate init?(_ body: RawSpan) {
    guard body.byteCount == 14, body.uint32(at: 2) <= body.uint32(at: 6) else { return nil }
    self.init(
      index: body[0] == allStreams ? nil : body[0], reason: body[1], range: body.uint32(at: 2)...body.uint32(at: 6),
      missing: body.uint32(at: 10))
  }
}

extension RecordedMark {
  /// nil if the record does not have these fields.
  fileprivate init?(_ body: RawSpan) {
    guard body.byteCount == 6 else { return nil }
    self.init(index: body[0] == allStreams ? nil : body[0], what: body[1], at: body.uint32(at: 2))
  }
}

extension SegmentEnd {
  /// nil if the record, of 13 bytes, does not have these fields.
  fileprivate init?(_ body: RawSpan) {
    guard let reason = Reason(rawValue: body[0]), let time = body.segmentTime(at: 5) else { return nil }
    self.init(reason: reason, time: time)
  }
}

extension RawSpan {
  /// nil for a time that no segment has.
  fileprivate func segmentTime(at offset: Int) -> Int64? {
    Int64(exactly: uint64(at: offset)).flatMap { $0 < SegmentHeader.timeLimit ? $0 : nil }
  }
}

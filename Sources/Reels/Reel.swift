import MediaModel
import Recording

/// The segments of one participant's stay. Memory is bounded by the one who writes: `backlog` is what was handed out and is not on the disk.
final class Reel {
  /// A segment ends at this age or length.
  static let longest = Duration.seconds(10)
  static let mostBytes = 4 << 20
  /// Records are handed out at this length or age.
  static let writeBytes = 64 << 10
  static let writeTime = Duration.milliseconds(250)

  /// An index in the segment: frames of one track, layer and epoch.
  private struct Key: Hashable {
    var track: UInt8
    var rank: UInt8
    var epoch: UInt32
  }

  let name: ReelName
  private var writer: SegmentWriter?
  private var start = Instant(nanoseconds: 0)
  private var indexes: [Key: UInt8] = [:]
  private var firstWaiting: Instant?
  /// It has a segment, so that a last one says that it is complete.
  private var hasSegments = false
  /// Bytes that are handed out and not written.
  var backlog = 0
  private let output: ReelSink

  init(_ name: ReelName, _ output: ReelSink) {
    self.name = name
    self.output = output
  }

  var isOpen: Bool { writer != nil }

  /// A stream of frames with the same key.
  struct Stream {
    var track: UInt8
    var rank: UInt8
    var epoch: UInt32
    var source: TrackSource
    var codec: UInt8
    var clockRate: UInt32
    /// The newest instant of a timestamp that the sender reported, or else of a packet.
    var clock: (source: RecordedClock.Source, timestamp: UInt32, at: Instant)
  }

  // MARK: records

  func write(_ frame: FrameAssembler.Frame, of stream: Stream, gap: Gap?, now: Instant) {
    if let writer, !writer.hasRoom || isFull(for: stream) { close(.continued, now: now) }
    let index = index(of: stream, now: now)
    if let gap { write(gap, at: index, until: frame.arrival) }
    var flags: UInt8 = frame.isKeyFrame ? 1 : 0
    if frame.isDiscardable { flags |= 2 }
    flags |= frame.orientation << 2 | frame.spatialLayer << 4 | frame.temporalLayer << 6
    writer?.appendFrame(
      index, flags: flags, timestamp: frame.timestamp, arrival: milliseconds(frame.arrival), frame.bytes)
    output.counts.frames &+= 1
    output.counts.bytes &+= UInt64(frame.bytes.count)
    afterWriting(now: now)
  }

  /// A sender's report: the segment's clock of each stream of the track's layer.
  func note(_ clock: (timestamp: UInt32, at: Instant), track: UInt8, rank: UInt8, now: Instant) {
    guard isOpen else { return }
    for (key, index) in indexes.sorted(by: { $0.value < $1.value }) where key.track == track && key.rank == rank {
      writer?.append(
        RecordedClock(index: index, source: .senderReport, timestamp: clock.timestamp, time: output.wall(clock.at)))
    }
    afterWriting(now: now)
  }

  /// - Parameter track: nil: all of the reel. A track that has no frame in this segment needs no mark.
  func mark(_ what: UInt8, track: UInt8?, now: Instant) {
    guard isOpen else { return }
    let at = milliseconds(now)
    if let track {
      for (key, index) in indexes.sorted(by: { $0.value < $1.value }) where key.track == track {
        writer?.append(RecordedMark(index: index, what: what, at: at))
      }
    } else {
      writer?.append(RecordedMark(index: nil, what: what, at: at))
    }
    afterWriting(now: now)
  }

  /// A part of a stream that is missing.
  struct Gap {
    var reason: GapReason
    var since: Instant
    var packets: UInt32
  }

  private func write(_ gap: Gap, at index: UInt8, until end: Instant) {
    let (from, to) = (milliseconds(gap.since), milliseconds(end))
    writer?.append(
      RecordedGap(index: index, reason: gap.reason.rawValue, range: from...max(from, to), missing: gap.packets))
    output.counts.gaps[gap.reason, default: 0] &+= 1
  }

  /// A gap that lasts to the end of the segment, of a stream that has frames in it.
  private func write(_ gaps: [(stream: Stream, gap: Gap)], until end: Instant) {
    for (stream, gap) in gaps {
      guard let index = indexes[Key(track: stream.track, rank: stream.rank, epoch: stream.epoch)] else { continue }
      write(gap, at: index, until: end)
    }
  }

  /// Milliseconds since the segment's start. A frame that waited for its key may be older.
  private func milliseconds(_ instant: Instant) -> UInt32 {
    UInt32(clamping: start.duration(to: instant).nanoseconds / 1_000_000)
  }

  private func isFull(for stream: Stream) -> Bool {
    indexes[Key(track: stream.track, rank: stream.rank, epoch: stream.epoch)] == nil
      && indexes.count >= Int(SegmentContents.maximumStreams)
  }

  private func index(of stream: Stream, now: Instant) -> UInt8 {
    if writer == nil { open(now: now) }
    let key = Key(track: stream.track, rank: stream.rank, epoch: stream.epoch)
    if let index = indexes[key] { return index }
    let index = UInt8(indexes.count)
    indexes[key] = index
    writer?.append(
      RecordedStream(
        index: index, n: stream.track, source: stream.source.code, codec: stream.codec, layer: stream.rank,
        clockRate: stream.clockRate, epoch: stream.epoch))
    writer?.append(
      RecordedClock(
        index: index, source: stream.clock.source, timestamp: stream.clock.timestamp, time: output.wall(stream.clock.at)
      ))
    return index
  }

  // MARK: segments

  private func open(now: Instant) {
    writer = SegmentWriter()
    start = now
    indexes = [:]
    hasSegments = true
    output.add(.begin(name, start: output.wall(now)))
  }

  private func afterWriting(now: Instant) {
    guard let writer else { return }
    firstWaiting = firstWaiting ?? now
    if writer.byteCount >= Self.mostBytes { return close(.continued, now: now) }
    if writer.pendingCount >= Self.writeBytes { flush() }
  }

  private func flush() {
    guard let bytes = writer?.take(), !bytes.isEmpty else { return }
    firstWaiting = nil
    backlog += bytes.count
    output.backlog += bytes.count
    output.add(.write(name, bytes))
  }

  /// - Parameter gaps: those that last.
  func tick(now: Instant, gaps: () -> [(stream: Stream, gap: Gap)]) {
    guard isOpen else { return }
    if start.advanced(by: Self.longest) <= now {
      write(gaps(), until: now)
      close(.continued, now: now)
    } else if let firstWaiting, firstWaiting.advanced(by: Self.writeTime) <= now {
      flush()
    }
  }

  /// Ends the segment, so that it can be read.
  func close(_ reason: SegmentEnd.Reason, now: Instant) {
    guard isOpen else { return }
    writer?.append(SegmentEnd(reason: reason, time: output.wall(now)))
    flush()
    writer = nil
    output.add(.close(name))
  }

  /// The stay is over: the last segment says so.
  func end(now: Instant) {
    if hasSegments {
      if !isOpen { open(now: now) }
      close(.complete, now: now)
    }
    output.add(.end(name))
  }
}

/// Where reels put what they made.
final class ReelSink {
  private(set) var outputs: [ReelOutput] = []
  /// Bytes of all reels that are handed out and not written.
  var backlog = 0
  /// An equal part of it for each reel that has some.
  var fairShare = 0
  var counts = ReelCounts()
  /// Microseconds since 1970, when the monotonic clock was 0.
  var wallOffset: Int64 = 0

  func add(_ output: ReelOutput) { outputs.append(output) }

  func take() -> [ReelOutput] {
    defer { outputs = [] }
    return outputs
  }

  /// Microseconds since 1970.
  func wall(_ instant: Instant) -> Int64 { wallOffset &+ Int64(clamping: instant.nanoseconds / 1_000) }
}

extension TrackSource {
  /// As in a stream record.
  var code: UInt8 {
    switch self {
    case .microphone: 1
    case .camera: 2
    case .screen: 3
    case .screenAudio: 4
    }
  }
}

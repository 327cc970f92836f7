import Contract
import MediaModel
import Octets
import Recording
import SFrame

/// Reads one reel: which of its segments count, what is in them, and what the server has done to it. Bytes come in, values go out.
struct ReelReader: Sendable {
  /// How its frames are opened.
  enum Keys: Sendable {
    /// A device's: each segment is sealed as a whole. The chain key of segment 0.
    case chain(ReelChain)
    /// A participant's, in a call: each frame is sealed. The keys that the participant handed out.
    case tracks(ParticipantNumber, [TrackKeyPlace: FrameSecret])
  }

  /// A track in one epoch.
  struct TrackKeyPlace: Hashable, Sendable {
    var n: UInt8
    var epoch: UInt32
  }

  /// A layer of a track in one epoch: its frames' counters rise.
  private struct CountedLayer: Hashable {
    var place: TrackKeyPlace
    var layer: UInt8
  }

  let index: ReelIndex
  private let keys: Keys
  private let witnesses: [ReelHead]
  private let remembered: ReelHead?
  /// When the newest witness says that the reel's last segment ends, with how many segments there are then.
  private let witnessedEnd: (segments: UInt32, time: Int64)?
  /// Chain keys for going back: one of 32 is kept.
  private var chains: [ReelChain] = []
  private static let kept: UInt32 = 32
  private(set) var refused: [Int: SegmentRefusal] = [:]
  private(set) var missing: Set<Int> = []
  /// Frames that do not belong where they are.
  private var hasForeignFrames = false
  private var counters: [CountedLayer: [Int: ClosedRange<UInt64>]] = [:]
  private var ends: [Int: SegmentEnd] = [:]

  init(
    _ index: ReelIndex, keys: Keys, witnesses: [(head: ReelHead, at: Timestamp)] = [], remembered: ReelHead? = nil
  ) {
    self.index = index
    self.keys = keys
    self.witnesses = witnesses.map(\.head)
    self.remembered = remembered
    witnessedEnd = witnesses.max { $0.head.segments < $1.head.segments }.map {
      ($0.head.segments, max(0, min($0.at.milliseconds, SegmentHeader.timeLimit / 1_000)) * 1_000)
    }
    if case .chain(let first) = keys { chains = [first] }
  }

  var count: Int { index.entries.count }

  /// When the reel begins, in microseconds since 1970.
  var start: Int64 { index.entries.first?.start ?? 0 }

  /// When it ends, as far as that is known.
  var end: Int64 { count == 0 ? 0 : end(of: count - 1) }

  /// To be remembered: the list as it is now.
  var head: ReelHead {
    ReelHead(segments: UInt32(truncatingIfNeeded: count), hash: index.entries.last?.hash ?? .zeros)
  }

  /// The worth of the reel, as far as it was read.
  var finding: ReelIndex.Finding {
    let listed = index.finding(witnesses: witnesses, remembered: remembered)
    if listed == .changed || !refused.isEmpty || hasForeignFrames || lacksWitnessed || fallsBack { return .changed }
    return listed
  }

  /// The last record of the last segment; nil if that was not read, or has none. In a call's recording it is only the server's word.
  var ending: SegmentEnd? { ends[count - 1] }

  /// How many segments there were at some time, by a witness or by what was seen here.
  var knownCount: Int {
    Int((witnesses + (remembered.map { [$0] } ?? [])).map(\.segments).max() ?? 0)
  }

  /// Whether a segment is missing that a witness or this device has seen.
  private var lacksWitnessed: Bool { missing.contains { $0 < knownCount } }

  /// The server writes a call's segments by one clock, which does not go back.
  private var fallsBack: Bool {
    guard case .tracks = keys else { return false }
    return zip(index.entries, index.entries.dropFirst()).contains { $0.start > $1.start }
  }

  /// The segment in which `time` is; the first or the last if it is outside.
  func number(at time: Int64) -> Int {
    var (low, high) = (0, max(0, count - 1))
    while low < high {
      let middle = (low + high + 1) / 2
      if index.entries[middle].start <= time { low = middle } else { high = middle - 1 }
    }
    return low
  }

  // MARK: segments

  /// The server has no segment `number`.
  mutating func lack(_ number: Int) -> RecordingSegment {
    missing.insert(number)
    return hole(number, .missing)
  }

  /// Opens segment `number`, which is listed, from its file.
  mutating func open(_ number: Int, _ file: [UInt8]) -> RecordingSegment {
    do throws(SegmentRefusal) {
      let (header, records) = try records(number, file)
      missing.remove(number)
      refused[number] = nil
      return read(number, header, records)
    } catch {
      refused[number] = error
      return hole(number, .refused(error))
    }
  }

  private mutating func records(
    _ number: Int, _ file: [UInt8]
  ) throws(SegmentRefusal) -> (header: SegmentHeader, bytes: [UInt8]) {
    guard file.count <= SegmentHeader.maximumSegmentBytes else { throw .notListed }
    guard let header = try? SegmentHeader(parsing: file.span.bytes) else { throw .malformed }
    guard Int(header.number) == number,
      index.holds(header, byteCount: file.count, hash: SegmentHash(of: file))
    else { throw .notListed }
    switch keys {
    case .chain:
      guard let bytes = SegmentSealing.open(file, under: chain(for: header.number), header) else { throw .notSealed }
      return (header, bytes)
    case .tracks:
      guard !header.isSealed else { throw .notSealed }
      return (header, Array(file[SegmentHeader.byteCount...]))
    }
  }

  /// Chain keys are kept in the order of their numbers, from segment 0 on.
  private mutating func chain(for number: UInt32) -> ReelChain {
    var chain = chains[Int(min(number / Self.kept, UInt32(chains.count - 1)))]
    while chain.number < number {
      chain.advance()
      if chain.number == UInt32(chains.count) * Self.kept { chains.append(chain) }
    }
    return chain
  }

  private func hole(_ number: Int, _ reason: RecordingGap.Reason) -> RecordingSegment {
    let (start, end) = (index.entries[number].start, end(of: number))
    return RecordingSegment(
      number: number, start: start, end: end, tracks: [], frames: [],
      gaps: [RecordingGap(track: nil, from: start, to: end, reason: reason)], marks: [])
  }

  private func end(of number: Int) -> Int64 {
    let start = index.entries[number].start
    if let end = ends[number] { return max(start, end.time) }
    if number + 1 < count { return max(start, index.entries[number + 1].start) }
    guard let witnessedEnd, Int(witnessedEnd.segments) == count else { return start }
    return max(start, witnessedEnd.time)
  }

  private mutating func read(_ number: Int, _ header: SegmentHeader, _ bytes: [UInt8]) -> RecordingSegment {
    let contents = SegmentContents(parsing: bytes.span.bytes, start: header.start)
    if case .end(let end) = contents.records.last { ends[number] = end }
    var reading = SegmentReading(start: header.start)
    for record in contents.records { reading.note(record) }
    var opening = FrameOpening(keys: keys, earlier: counters, number: number)
    for case .frame(let frame) in contents.records {
      guard let stream = reading.streams[frame.index] else { continue }
      switch opening.open(bytes[frame.range], stream) {
      case .success(let plaintext): reading.add(frame, stream, plaintext)
      case .failure(let failure):
        if failure.reason == .foreignFrame { hasForeignFrames = true }
        reading.lose(frame, stream, failure.reason)
      }
    }
    for (layer, range) in opening.seen { counters[layer, default: [:]][number] = range }
    let end = end(of: number)
    return reading.segment(number, end: end, isWhole: ends[number] != nil)
  }

  // MARK: frames of a call

  private struct FrameFailure: Error { var reason: RecordingGap.Reason }

  /// Opens the frames of one segment.
  private struct FrameOpening {
    let keys: Keys
    /// The counters in other segments.
    let earlier: [CountedLayer: [Int: ClosedRange<UInt64>]]
    let number: Int
    private(set) var seen: [CountedLayer: ClosedRange<UInt64>] = [:]
    private var contexts: [TrackKeyPlace: ReceiverContext] = [:]
    /// Between which counters those of a layer in this segment are, by the other segments.
    private var bounds: [CountedLayer: (above: UInt64?, below: UInt64?)] = [:]

    init(keys: Keys, earlier: [CountedLayer: [Int: ClosedRange<UInt64>]], number: Int) {
      self.keys = keys
      self.earlier = earlier
      self.number = number
    }

    mutating func open(_ stored: ArraySlice<UInt8>, _ stream: RecordedStream) -> Result<[UInt8], FrameFailure> {
      guard case .tracks(let participant, let secrets) = keys else { return .success(Array(stored)) }
      guard let clear = clearBytes(of: stored, stream.codec) else {
        return .failure(FrameFailure(reason: .unsupportedCodec))
      }
      let place = TrackKeyPlace(n: stream.n, epoch: stream.epoch)
      guard let secret = secrets[place] else { return .failure(FrameFailure(reason: .noKey)) }
      let (metadata, sealed) = (Array(stored.prefix(clear)), Array(stored.dropFirst(clear)))
      let keyID = FrameKeyID(participant: participant, track: stream.n, epoch: stream.epoch).rawValue
      var context = contexts[place] ?? ReceiverContext(keyID: keyID, secret: secret)
      let layer = CountedLayer(place: place, layer: stream.layer)
      guard let header = try? SFrameHeader(parsing: sealed.span.bytes), header.keyID == keyID,
        rises(header.counter, in: layer),
        let plaintext = try? context.decrypt(sealed, metadata: metadata)
      else { return .failure(FrameFailure(reason: .foreignFrame)) }
      contexts[place] = context
      seen[layer] = (seen[layer]?.lowerBound ?? header.counter)...header.counter
      return .success(metadata + plaintext)
    }

    /// Whether the counter is behind all of this layer before, and before all behind, as far as those were read.
    private mutating func rises(_ counter: UInt64, in layer: CountedLayer) -> Bool {
      if let last = seen[layer]?.upperBound { return counter > last && counter < bounds[layer]?.below ?? .max }
      let others = earlier[layer] ?? [:]
      let bound = (
        above: others.filter { $0.key < number }.values.map(\.upperBound).max(),
        below: others.filter { $0.key > number }.values.map(\.lowerBound).min()
      )
      bounds[layer] = bound
      return bound.above.map { counter > $0 } ?? true && counter < bound.below ?? .max
    }

    /// The bytes in front of the SFrame (protocol section 5.9); nil for a codec whose frames are not opened here.
    private func clearBytes(of stored: ArraySlice<UInt8>, _ codec: UInt8) -> Int? {
      switch RecordingTrack.Codec(rawValue: codec) {
      case .opus, .vp9: 0
      // The lowest bit of a VP8 frame is 0 in key frames (RFC 6386 section 9.1).
      case .vp8: min(stored.count, (stored.first ?? 0) & 1 == 0 ? 10 : 3)
      case .av1, .h264, nil: nil
      }
    }
  }
}

/// Collects what the records of a segment say.
private struct SegmentReading {
  let start: Int64
  private(set) var streams: [UInt8: RecordedStream] = [:]
  private var frames: [RecordingFrame] = []
  private var gaps: [RecordingGap] = []
  private var marks: [RecordingMark] = []
  private var tracks: [UInt8: RecordingTrack] = [:]
  /// For each track whose last frames were lost: the gap that they are.
  private var losses: [UInt8: Int] = [:]

  init(start: Int64) { self.start = start }

  mutating func note(_ record: SegmentRecord) {
    switch record {
    case .stream(let stream): streams[stream.index] = stream
    case .gap(let gap):
      gaps.append(
        RecordingGap(
          track: gap.index.flatMap { streams[$0]?.n }, from: time(gap.range.lowerBound),
          to: time(gap.range.upperBound), reason: RecordingGap.Reason(recorded: gap.reason)))
    case .mark(let mark):
      guard let event = RecordingMark.Event(rawValue: mark.what) else { break }
      marks.append(
        RecordingMark(track: mark.index.flatMap { streams[$0]?.n }, time: time(mark.at), event: event))
    case .frame, .clock, .end: break
    }
  }

  /// In range: a start is below 2^53 microseconds, the other below 2^32 milliseconds.
  private func time(_ milliseconds: UInt32) -> Int64 { start + Int64(milliseconds) * 1_000 }

  mutating func add(_ frame: RecordedFrame, _ stream: RecordedStream, _ bytes: [UInt8]) {
    guard let track = RecordingTrack(stream) else { return lose(frame, stream, .unsupportedCodec) }
    tracks[track.number] = track
    losses[track.number] = nil
    frames.append(
      RecordingFrame(
        track: stream.n, time: frame.time, isKeyFrame: frame.isKeyFrame || track.codec == .opus,
        isDiscardable: frame.isDiscardable, orientation: frame.orientation, bytes: bytes))
  }

  /// A frame that cannot be played. Those in succession are one gap.
  mutating func lose(_ frame: RecordedFrame, _ stream: RecordedStream, _ reason: RecordingGap.Reason) {
    if let place = losses[stream.n], gaps[place].reason == reason {
      gaps[place].from = min(gaps[place].from, frame.time)
      gaps[place].to = max(gaps[place].to, frame.time)
    } else {
      losses[stream.n] = gaps.count
      gaps.append(RecordingGap(track: stream.n, from: frame.time, to: frame.time, reason: reason))
    }
  }

  func segment(_ number: Int, end: Int64, isWhole: Bool) -> RecordingSegment {
    let last = frames.map(\.time).max() ?? start
    var gaps = gaps
    if !isWhole { gaps.append(RecordingGap(track: nil, from: last, to: max(last, end), reason: .cutShort)) }
    return RecordingSegment(
      number: number, start: start, end: max(start, end),
      tracks: tracks.values.sorted { $0.number < $1.number },
      frames: frames.stablySorted { $0.time }, gaps: gaps.stablySorted { $0.from },
      marks: marks.stablySorted { $0.time })
  }
}

extension Array {
  /// In the order of `key`; equals stay in their order.
  fileprivate func stablySorted(by key: (Element) -> Int64) -> [Element] {
    enumerated().sorted { (key($0.element), $0.offset) < (key($1.element), $1.offset) }.map(\.element)
  }
}

extension RecordingTrack {
  /// nil for a source or a codec of a later version.
  fileprivate init?(_ stream: RecordedStream) {
    guard let source = MediaSource(recorded: stream.source), let codec = Codec(rawValue: stream.codec) else {
      return nil
    }
    self.init(number: stream.n, source: source, codec: codec, clockRate: stream.clockRate)
  }
}

extension MediaSource {
  private static let recorded: [MediaSource] = [.microphone, .camera, .screen, .screenAudio]

  /// A source by its number in a segment, from 1 on.
  init?(recorded number: UInt8) {
    guard (1...UInt8(Self.recorded.count)).contains(number) else { return nil }
    self = Self.recorded[Int(number) - 1]
  }

  /// Its number in a segment.
  var recordedNumber: UInt8 { UInt8(Self.recorded.firstIndex(of: self).map { $0 + 1 } ?? 0) }
}

extension RecordingGap.Reason {
  fileprivate init(recorded number: UInt8) {
    self =
      switch number {
      case 1: .network
      case 2: .serverLate
      case 3: .disk
      case 4: .restart
      case 5: .keyNotAdmitted
      case 6: .recorderAway
      default: .unknown
      }
  }
}

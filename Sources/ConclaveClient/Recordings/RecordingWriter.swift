import Contract
import MediaModel
import Recording

/// Seals what this device records: frames come in, sealed segments go out, each under a key that is gone once the segment is sealed. A value: time and randomness
/// come in as arguments.
///
/// The recording needs no network. `SegmentUploader` sends the segments while it goes on, and `CallClient.finishRecording` and `shareRecording` give it to its
/// readers.
public struct RecordingWriter: Sendable {
  /// The number of the only reel of what a device records.
  static let reel: UInt32 = 1
  private static let byteLimit = 4 << 20
  private static let maximumTracks = 16

  /// The state to store with each segment, before the segment leaves the device.
  public private(set) var draft: RecordingDraft

  private let identity: DeviceIdentity
  private let statement: SignedStatement
  private var chain: ReelChain
  private var segment: OpenSegment?

  /// Begins a recording of the device of `identity`; nil if an id is none of the protocol's, or there are no tracks, more than 16, or two with the same
  /// number.
  ///
  /// - Parameters:
  ///   - kind: `message` or `own`.
  ///   - call: of a message, the call that was not answered.
  ///   - readers: the users who are meant to open it besides this one, at most 63.
  ///   - tracks: what is recorded.
  ///   - milliseconds: the device's clock, since 1970.
  public init?(
    _ identity: DeviceIdentity, kind: RecordingInfo.Kind, call: String? = nil, readers: [String] = [],
    tracks: [RecordingTrack], at milliseconds: Int64, using generator: inout some RandomNumberGenerator
  ) {
    let users = readers.compactMap { UserID($0) }
    let callID = call.flatMap { CallID($0) }
    guard kind != .call, users.count == readers.count, (callID == nil) == (call == nil),
      kind == .message || call == nil, !tracks.isEmpty, tracks.count <= Self.maximumTracks,
      Set(tracks.map(\.number)).count == tracks.count,
      tracks.allSatisfy({ $0.number > 0 && $0.clockRate > 0 }),
      let id = Self.id(using: &generator)
    else { return nil }
    let all = Set([identity.address.user] + users).sorted()
    guard all.count <= SignedStatement.maximumReaders else { return nil }
    let key = RecordingKey(using: &generator)
    let hasPicture = tracks.contains { $0.source == .camera }
    let hasScreen = tracks.contains { $0.source == .screen || $0.source == .screenAudio }
    let hasVoice = tracks.contains { $0.source == .microphone }
    let media: [RecordedMedium] =
      (hasVoice ? [.audio] : []) + (hasPicture ? [.video] : []) + (hasScreen ? [.screen] : [])
    let at = Timestamp(milliseconds: milliseconds)
    let statement = SignedStatement(
      signing: RecordingStatement(
        id: id, kind: kind.contract, call: callID, publicKey: Base64Bytes(key.publicKey), media: media, readers: all,
        at: at, by: identity.address, sigAlg: "", signature: Base64Bytes([])),
      by: identity)
    let chain = ReelChain(Self.random(ReelChain.keyBytes, using: &generator), of: id, reel: Self.reel)
    guard let chain, let reelKey = chain.sealed(for: statement, by: identity),
      let grant = key.grant(to: identity.publicKeys, of: statement, at: at, by: identity)
    else { return nil }
    self.identity = identity
    self.statement = statement
    self.chain = chain
    draft = RecordingDraft(statement.statement, reelKey: reelKey, grant: grant, chain: chain, tracks: tracks)
  }

  /// Goes on with a recording of this device that was stored; nil if it has ended or is another device's. The time until `time` (microseconds since 1970) is a
  /// gap.
  public init?(resuming draft: RecordingDraft, _ identity: DeviceIdentity, at time: Int64) {
    guard !draft.isEnded, let statement = draft.signed(by: identity),
      let chain = ReelChain(
        draft.chain.bytes, of: statement.id, reel: Self.reel, number: draft.segments)
    else { return nil }
    self.identity = identity
    self.statement = statement
    self.chain = chain
    self.draft = draft
    if let end = draft.end, end < time { addGap(.recorderAway, from: end, to: time) }
  }

  // MARK: recording

  /// Adds a frame of one of the tracks; frames of others are ignored. If a segment is full, returns it, sealed: store it with `draft`, then send it. The frame is
  /// then the first of the next one.
  public mutating func add(
    _ frame: RecordingFrame, using generator: inout some RandomNumberGenerator
  ) -> SealedSegment? {
    guard !draft.isEnded, let index = draft.tracks.firstIndex(where: { $0.number == frame.track }),
      frame.bytes.count <= SegmentWriter.maximumFrame
    else { return nil }
    var sealed: SealedSegment?
    if let segment, isFull(segment, before: frame) { sealed = cut(.continued, at: frame.time, using: &generator) }
    begin(at: frame.time)
    segment?.add(frame, UInt8(index), draft.tracks[index])
    return sealed
  }

  /// Something happened to all tracks, at `time` in microseconds since 1970.
  public mutating func mark(_ event: RecordingMark.Event, at time: Int64) {
    guard !draft.isEnded else { return }
    begin(at: time)
    segment?.add(event, at: time)
  }

  /// Why nothing was recorded for a while.
  public enum Interruption: UInt8, Sendable, Hashable { case disk = 3, recorderAway = 6 }

  /// Nothing was recorded in this time, in microseconds since 1970: frames were dropped, or none came.
  public mutating func addGap(_ reason: Interruption, from: Int64, to: Int64) {
    guard !draft.isEnded else { return }
    begin(at: from)
    segment?.addGap(reason.rawValue, from: from, to: max(from, to))
  }

  /// Ends the recording at `time` (microseconds since 1970), which is behind the last frame. Returns the last segment.
  public mutating func end(at time: Int64, using generator: inout some RandomNumberGenerator) -> SealedSegment? {
    guard !draft.isEnded else { return nil }
    begin(at: time)
    let sealed = cut(.complete, at: max(time, segment?.latest ?? time), using: &generator)
    draft.isEnded = true
    return sealed
  }

  /// How long a segment of this kind is, in microseconds: what is lost with the device at the most.
  private var duration: Int64 { draft.statement.kind == .own ? 2_000_000 : 4_000_000 }

  private func isFull(_ segment: OpenSegment, before frame: RecordingFrame) -> Bool {
    frame.time &- segment.start >= duration || segment.byteCount + frame.bytes.count > Self.byteLimit
      || !segment.hasRoom
  }

  private mutating func begin(at time: Int64) {
    if segment == nil { segment = OpenSegment(start: max(0, min(time, SegmentHeader.timeLimit - 1))) }
  }

  private mutating func cut(
    _ reason: SegmentEnd.Reason, at time: Int64, using generator: inout some RandomNumberGenerator
  ) -> SealedSegment? {
    guard var segment else { return nil }
    self.segment = nil
    let end = max(0, min(time, SegmentHeader.timeLimit - 1))
    let records = segment.close(reason, at: end)
    // Its head is what the former segment was, or what was stored.
    guard let previous = SegmentHash(draft.head.bytes) else { return nil }
    let header = SegmentHeader(
      recording: statement.id, reel: Self.reel, number: chain.number, start: segment.start, previous: previous,
      nonce: Self.random(SegmentHeader.nonceBytes, using: &generator))
    // A segment is at most one frame longer than half of what a file may have.
    guard let file = SegmentSealing.seal(records, under: chain, header) else { return nil }
    let hash = SegmentHash(of: file)
    chain.advance()
    let witness = ReelWitness.signing(
      reel: Self.reel, segments: chain.number, head: hash, at: Self.milliseconds(end), isEnd: false, of: statement,
      by: identity)
    draft.chain = Base64Bytes(chain.bytes)
    draft.head = Base64Bytes(hash.bytes)
    draft.segments = chain.number
    draft.end = end
    return SealedSegment(file, header, hash: hash, witness: witness)
  }

  /// Microseconds since 1970 as a witness has them.
  static func milliseconds(_ time: Int64) -> Timestamp { Timestamp(milliseconds: (time + 500) / 1_000) }

  /// A random UUID (RFC 9562 section 5.4).
  static func id(using generator: inout some RandomNumberGenerator) -> RecordingID? {
    var bytes = random(RecordingID.byteCount, using: &generator)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return RecordingID(bytes)
  }

  static func random(_ count: Int, using generator: inout some RandomNumberGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }
}

/// The records of a segment that is not sealed yet.
private struct OpenSegment: Sendable {
  /// Microseconds since 1970.
  let start: Int64
  /// When the last frame was captured.
  private(set) var latest: Int64
  private var writer = SegmentWriter()
  private var announced: Set<UInt8> = []
  /// Streams whose clock holds.
  private var timed: Set<UInt8> = []

  init(start: Int64) {
    self.start = start
    latest = start
  }

  var byteCount: Int { writer.byteCount }
  var hasRoom: Bool { writer.hasRoom }

  mutating func add(_ frame: RecordingFrame, _ index: UInt8, _ track: RecordingTrack) {
    if announced.insert(index).inserted {
      writer.append(
        RecordedStream(
          index: index, n: track.number, source: track.source.recordedNumber, codec: track.codec.rawValue, layer: 0,
          clockRate: track.clockRate, epoch: 0))
    }
    let timestamp = Self.timestamp(frame.time, track.clockRate)
    if timed.insert(index).inserted {
      writer.append(RecordedClock(index: index, source: .device, timestamp: timestamp, time: frame.time))
    }
    let flags =
      (frame.isKeyFrame ? 1 : 0) | (frame.isDiscardable ? 2 : 0) | (frame.orientation & 3) << 2
    writer.appendFrame(
      index, flags: flags, timestamp: timestamp, arrival: milliseconds(frame.time), frame.bytes)
    latest = max(latest, frame.time)
  }

  /// Behind a mark or a gap each stream gets its clock again.
  mutating func add(_ event: RecordingMark.Event, at time: Int64) {
    writer.append(RecordedMark(index: nil, what: event.rawValue, at: milliseconds(time)))
    timed = []
  }

  mutating func addGap(_ reason: UInt8, from: Int64, to: Int64) {
    writer.append(
      RecordedGap(index: nil, reason: reason, range: milliseconds(from)...milliseconds(to), missing: 0))
    timed = []
  }

  mutating func close(_ reason: SegmentEnd.Reason, at time: Int64) -> [UInt8] {
    writer.append(SegmentEnd(reason: reason, time: time))
    return writer.take()
  }

  /// Milliseconds since the start. Frames of two tracks are not in order, so one may be from before it: its clock has the time.
  private func milliseconds(_ time: Int64) -> UInt32 {
    let (since, overflow) = time.subtractingReportingOverflow(start)
    guard !overflow, since > 0 else { return 0 }
    return UInt32(clamping: (since / 1_000) + (since % 1_000 >= 500 ? 1 : 0))
  }

  /// A time in units of the track's clock. It wraps like RTP's.
  private static func timestamp(_ time: Int64, _ rate: UInt32) -> UInt32 {
    let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000_000)
    return UInt32(truncatingIfNeeded: seconds &* Int64(rate) &+ rest * Int64(rate) / 1_000_000)
  }
}

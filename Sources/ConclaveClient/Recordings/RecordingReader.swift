import Contract
import Foundation
import MediaModel
import Recording

/// Reads a recording. Everything that its source says is checked: signatures, hash chains, envelopes, the order of frames. A part that cannot be played is a gap with
/// a reason, and the rest plays on.
///
/// It keeps what it found out, so one reader may be asked for any segment in any order.
public actor RecordingReader {
  /// The statement's contents.
  public nonisolated let info: RecordingInfo

  private let id: RecordingID
  private let source: any RecordingSource
  private let opened: OpenedRecording
  private var reelInfos: [UInt32: ReelInfo] = [:]
  private var readers: [UInt32: ReelReader] = [:]

  /// Segments of a reel in a page of the manifest (protocol section 13.4).
  static let page = 1_000

  /// Opens the recording `id` of `source` for the device of `identity`.
  ///
  /// - Parameters:
  ///   - pins: devices as they were first seen, and `statements` what they signed about each other, from earlier `ClientEvent`s: a recording counts only with
  ///     their keys. A device that is not among them is `TrustLevel.new`: show it.
  ///   - seen: `seen` of an earlier reader of this recording.
  ///   - now: the clock, in milliseconds since 1970.
  /// - Throws: `UnreadableRecording`, or what the source throws.
  public init(
    _ id: String, from source: some RecordingSource, as identity: DeviceIdentity, pins: [PinnedDevice] = [],
    statements: [TrustStatement] = [], seen: [SeenReel] = [], now: Int64
  ) async throws {
    try await self.init(
      id, from: source, signers: KnownSigners(identity: identity, pins: Pins(pins, statements: statements)), seen: seen,
      now: Timestamp(milliseconds: now)
    ) { _ in KnownKeys() }
  }

  /// As above. `look` finds the public keys of devices that have granted the recording and are not known.
  init(
    _ id: String, from source: some RecordingSource, signers: KnownSigners, seen: [SeenReel], now: Timestamp,
    lookUp look: @Sendable ([UserID]) async -> KnownKeys
  ) async throws {
    guard let recording = RecordingID(id) else { throw UnreadableRecording.malformed }
    var manifest = try await source.manifest(of: id, fromSegment: 0, fromNote: 0).manifest
    let strangers = manifest.grants.prefix(64).map(\.from).filter {
      $0 != manifest.statement.by && signers.signer($0) == nil
    }
    let granters = strangers.isEmpty ? KnownKeys() : await look(Set(strangers.map(\.user)).sorted())
    var opened = try OpenedRecording(
      manifest, id: recording, signers: signers, granters: granters, remembered: seen, now: now)
    var notes = manifest.notes
    while let next = opened.nextPage(after: manifest, size: Self.page) {
      let none = Int(RecordingNote.maximumCount)
      manifest = try await source.manifest(of: id, fromSegment: next, fromNote: none).manifest
      try opened.add(manifest)
    }
    while notes.count >= 200, let last = notes.map(\.number).max(), last < RecordingNote.maximumCount - 1 {
      manifest = try await source.manifest(of: id, fromSegment: ReelIndex.capacity, fromNote: Int(last) + 1).manifest
      guard manifest.notes.allSatisfy({ $0.number > last }) else { throw UnreadableRecording.malformed }
      notes = manifest.notes
      opened.addNotes(manifest)
    }
    self.id = recording
    self.source = source
    self.opened = opened
    info = RecordingInfo(opened.statement.statement, trust: opened.starter.trust)
    for (info, reader) in opened.reels {
      reelInfos[info.number] = info
      readers[info.number] = reader
    }
  }

  /// The reels, by their numbers, as far as they were read.
  public var reels: [ReelInfo] {
    reelInfos.values.map { info in
      var info = info
      if let reader = readers[info.number] { info.update(from: reader) }
      return info
    }.sorted { $0.number < $1.number }
  }

  /// The values to keep of this recording and to pass to the next reader. Nothing of a reel that has changed.
  public var seen: [SeenReel] {
    readers.values.filter { $0.finding != .changed && $0.finding != .cutOff && $0.count > 0 }.map { reader in
      SeenReel(
        reel: reader.index.reel, segments: reader.head.segments, head: reader.head.hash.bytes)
    }.sorted { $0.reel < $1.reel }
  }

  /// The notes of the starter's device by their numbers, as JSON (protocol section 13.1), and the numbers of those that the server has left out or changed.
  public var notes: (notes: [Int: [UInt8]], missing: [Int]) { opened.openedNotes }

  /// The recording's key, for further grants.
  var key: RecordingKey { opened.key }
  var statement: SignedStatement { opened.statement }

  /// When the recording begins and ends, in microseconds since 1970, as far as that is known; nil if nothing in it can be opened.
  public var span: ClosedRange<Int64>? {
    let known = readers.values.filter { $0.count > 0 }
    guard let start = known.map(\.start).min(), let end = known.map(\.end).max() else { return nil }
    return start...max(start, end)
  }

  /// Segment `number` of a reel: what plays, and what does not. Throws what the source throws; nil if no such segment is listed, or the reel is closed.
  public func segment(_ number: Int, ofReel reel: UInt32) async throws -> RecordingSegment? {
    guard let count = readers[reel]?.count, (0..<count).contains(number) else { return nil }
    let file = try await source.segment(number, ofReel: reel, in: id.text)
    guard let file else { return readers[reel]?.lack(number) }
    return readers[reel]?.open(number, file)
  }

  /// Frames, gaps and marks of all reels that are open, in the order of their times, from `time` (microseconds since 1970) on: from the beginning of the segments
  /// in which it is, so that decoders find a key frame. One segment of each reel that plays is in memory.
  public func moments(from time: Int64 = 0) -> RecordingMoments {
    let cursors = readers.values.filter { $0.count > 0 }.map { reader in
      RecordingMoments.Cursor(
        reel: reader.index.reel, starts: reader.index.entries.map(\.start), next: reader.number(at: time))
    }
    return RecordingMoments(self, cursors.sorted { $0.reel < $1.reel })
  }
}

/// Everything that happens in a recording, in the order of time.
public struct RecordingMoments: AsyncSequence, Sendable {
  /// One thing that happens.
  public struct Moment: Sendable, Hashable {
    /// A moment's content.
    public enum Content: Sendable, Hashable {
      /// A frame to be decoded. `RecordingTrack` says how.
      case frame(RecordingFrame, RecordingTrack)
      /// Nothing, or not everything, can be played.
      case gap(RecordingGap)
      /// Something happened to a track.
      case mark(RecordingMark)
    }

    /// The reel's number.
    public var reel: UInt32
    /// When, in microseconds since 1970.
    public var time: Int64
    /// A moment's content.
    public var content: Content
  }

  struct Cursor: Sendable {
    let reel: UInt32
    /// When each segment begins.
    let starts: [Int64]
    /// The next segment to open.
    var next: Int
    var waiting: [Moment] = []
    var place = 0

    /// When its next moment is; nil at the end. Before a segment is opened that is when it begins.
    var time: Int64? {
      if place < waiting.count { return waiting[place].time }
      return next < starts.count ? starts[next] : nil
    }
  }

  private let reader: RecordingReader
  private let cursors: [Cursor]

  init(_ reader: RecordingReader, _ cursors: [Cursor]) {
    self.reader = reader
    self.cursors = cursors
  }

  /// Begins at the start of the sequence.
  public func makeAsyncIterator() -> Iterator { Iterator(reader, cursors) }

  /// Opens one segment after the other.
  public struct Iterator: AsyncIteratorProtocol {
    private let reader: RecordingReader
    private var cursors: [Cursor]

    fileprivate init(_ reader: RecordingReader, _ cursors: [Cursor]) {
      self.reader = reader
      self.cursors = cursors
    }

    /// Throws what the recording's source throws; the next call tries the same segment again.
    public mutating func next() async throws -> Moment? {
      while true {
        let open = cursors.indices.filter { cursors[$0].time != nil }
        guard let first = open.min(by: { (cursors[$0].time ?? 0) < (cursors[$1].time ?? 0) }) else { return nil }
        if cursors[first].place < cursors[first].waiting.count {
          defer { cursors[first].place += 1 }
          return cursors[first].waiting[cursors[first].place]
        }
        let cursor = cursors[first]
        let segment = try await reader.segment(cursor.next, ofReel: cursor.reel)
        cursors[first].next += 1
        cursors[first].place = 0
        cursors[first].waiting = segment.map { Self.moments(of: $0, reel: cursor.reel) } ?? []
      }
    }

    private static func moments(of segment: RecordingSegment, reel: UInt32) -> [Moment] {
      let tracks = Dictionary(segment.tracks.map { ($0.number, $0) }) { first, _ in first }
      let frames = segment.frames.compactMap { frame in
        tracks[frame.track].map { Moment(reel: reel, time: frame.time, content: .frame(frame, $0)) }
      }
      let others =
        segment.gaps.map { Moment(reel: reel, time: $0.from, content: .gap($0)) }
        + segment.marks.map { Moment(reel: reel, time: $0.time, content: .mark($0)) }
      // A gap is told before the frames behind it.
      return (others + frames).enumerated()
        .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
    }
  }
}

import ConclaveClient

/// Writes one WebM file (RFC 9559) of what was recorded: clusters of five seconds, cues for seeking, the duration. Gaps stay gaps in time. A value: frames go in,
/// bytes to append come out, and at the end the bytes that replace the first ones.
struct WebMWriter {
  /// A track of the file.
  struct Track: Equatable {
    enum Format: Equatable {
      case opus(channels: Int)
      case video(codec: String, width: Int, height: Int)
    }

    /// From 1 on.
    var number: UInt8
    var format: Format
    /// In Hz.
    var clockRate: UInt32

    var isVideo: Bool { if case .video = format { true } else { false } }
  }

  private struct Frame {
    var number: UInt8
    var isKey: Bool
    var milliseconds: Int64
    var bytes: [UInt8]
  }

  private struct Cue {
    var milliseconds: Int64
    var number: UInt8
    var position: Int
  }

  private static let clusterMilliseconds: Int64 = 5_000
  /// Nanoseconds of a unit of time.
  private static let scale: UInt64 = 1_000_000
  /// Nanoseconds that a decoder of Opus needs before the first sound is right (RFC 7845 section 4.6).
  private static let preRoll: UInt64 = 80_000_000
  private static let app = Array("Conclave".utf8)
  private static let header = EBML.element(
    0x1A45_DFA3, EBML.element(0x4286, [1]), EBML.element(0x42F7, [1]), EBML.element(0x42F2, [4]),
    EBML.element(0x42F3, [8]), EBML.element(0x4282, Array("webm".utf8)), EBML.element(0x4287, [4]),
    EBML.element(0x4285, [2]))
  /// Where the segment's first byte is: all positions in the file count from there.
  private static let base = header.count + 4 + EBML.sizeBytes
  private static let (info, trackList, cluster, cueList): (UInt32, UInt32, UInt32, UInt32) = (
    0x1549_A966, 0x1654_AE6B, 0x1F43_B675, 0x1C53_BB6B
  )
  /// Bytes of an empty element that fills the room for tracks.
  private static let smallestVoid = 1 + EBML.sizeBytes

  private(set) var tracks: [Track]
  /// The time of 0, in microseconds since 1970.
  private let start: Int64
  /// The number of the first bytes, which `finish` replaces.
  private let headCount: Int
  private var written: Int
  private var frames: [Frame] = []
  private var clusterStart: Int64 = 0
  private var cues: [Cue] = []
  private var last: Int64 = 0

  /// - Parameters:
  ///   - tracks: those that are known before the first frame.
  ///   - room: how many bytes the head has at least, for tracks that are added later.
  init(_ tracks: [Track] = [], start: Int64, room: Int = 0) {
    self.tracks = tracks
    self.start = start
    headCount = max(room, Self.head(tracks, duration: 0, cuesAt: 0, end: 0).count)
    written = headCount
  }

  /// The bytes before the first cluster.
  var head: [UInt8] { padded(Self.head(tracks, duration: 0, cuesAt: 0, end: 0)) }

  /// False if the head has no room for another track.
  mutating func add(_ track: Track) -> Bool {
    let count = Self.head(tracks + [track], duration: 0, cuesAt: 0, end: 0).count
    guard count == headCount || count <= headCount - Self.smallestVoid, track.number < 127 else { return false }
    tracks.append(track)
    return true
  }

  /// The bytes to append, if a cluster is complete. Frames come in the order of their times, or nearly; `time` is in microseconds since 1970.
  mutating func add(_ number: UInt8, isKey: Bool, time: Int64, _ bytes: [UInt8]) -> [UInt8] {
    let milliseconds = Self.milliseconds(time, since: start)
    // A block's time is 2 bytes, from its cluster's start.
    let isApart = abs(milliseconds - clusterStart) >= Self.clusterMilliseconds
    let done = !frames.isEmpty && isApart ? takeCluster() : []
    if frames.isEmpty { clusterStart = milliseconds }
    frames.append(Frame(number: number, isKey: isKey, milliseconds: milliseconds, bytes: bytes))
    last = max(last, milliseconds)
    return done
  }

  /// The last bytes, and those that replace the first. `end` is when the recording ends, in microseconds since 1970.
  mutating func finish(end: Int64) -> (tail: [UInt8], head: [UInt8]) {
    let lastCluster = frames.isEmpty ? [] : takeCluster()
    let cuesAt = written
    let points = cues.map { cue in
      EBML.element(
        0xBB, EBML.element(0xB3, EBML.number(UInt64(cue.milliseconds))),
        EBML.element(
          0xB7, EBML.element(0xF7, [cue.number]), EBML.element(0xF1, EBML.number(UInt64(cue.position)))))
    }
    let list = EBML.element(Self.cueList, Array(points.joined()))
    written += list.count
    let duration = max(last, Self.milliseconds(end, since: start))
    return (lastCluster + list, padded(Self.head(tracks, duration: duration, cuesAt: cuesAt, end: written)))
  }

  /// Rounded, and 0 for a time before the start.
  private static func milliseconds(_ time: Int64, since start: Int64) -> Int64 {
    let (since, overflow) = time.subtractingReportingOverflow(start)
    guard !overflow, since > 0 else { return 0 }
    return since / 1_000 + (since % 1_000 >= 500 ? 1 : 0)
  }

  private func padded(_ head: [UInt8]) -> [UInt8] {
    let missing = headCount - head.count
    guard missing >= Self.smallestVoid else { return head }
    return head + EBML.element(0xEC, [UInt8](repeating: 0, count: missing - Self.smallestVoid))
  }

  /// - Parameters:
  ///   - cuesAt: where the cues are in the file; 0 if that is not known yet.
  ///   - end: the file's length.
  private static func head(_ tracks: [Track], duration: Int64, cuesAt: Int, end: Int) -> [UInt8] {
    let about = EBML.element(
      info, EBML.element(0x2AD7B1, EBML.number(scale)), EBML.element(0x4489, EBML.double(Double(duration))),
      EBML.element(0x4D80, app), EBML.element(0x5741, app))
    let list = EBML.element(trackList, Array(tracks.map(entry).joined()))
    func seek(_ id: UInt32, _ position: Int) -> [UInt8] {
      EBML.element(
        0x4DBB, EBML.element(0x53AB, EBML.number(UInt64(id))),
        EBML.element(0x53AC, EBML.eight(UInt64(max(0, position)))))
    }
    let seekCount = EBML.element(0x114D_9B74, seek(info, 0), seek(trackList, 0), seek(cueList, 0)).count
    let seeks = EBML.element(
      0x114D_9B74, seek(info, seekCount), seek(trackList, seekCount + about.count), seek(cueList, cuesAt - base))
    let size = cuesAt > 0 ? EBML.size(end - base) : EBML.unknownSize
    return header + EBML.number(0x1853_8067) + size + seeks + about + list
  }

  private static func entry(_ track: Track) -> [UInt8] {
    let number: [UInt8] = [track.number]
    let common = EBML.element(0xD7, number) + EBML.element(0x73C5, number) + EBML.element(0x9C, [0])
    switch track.format {
    case .video(let codec, let width, let height):
      let size = EBML.element(
        0xE0, EBML.element(0xB0, EBML.number(UInt64(width))), EBML.element(0xBA, EBML.number(UInt64(height))))
      return EBML.element(0xAE, common, EBML.element(0x83, [1]), EBML.element(0x86, Array(codec.utf8)), size)
    case .opus(let channels):
      // 48,000 Hz, little-endian, no gain (RFC 7845 section 5.1).
      let head = Array("OpusHead".utf8) + [1, UInt8(channels), 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0]
      let audio = EBML.element(
        0xE1, EBML.element(0xB5, EBML.double(Double(track.clockRate))), EBML.element(0x9F, [UInt8(channels)]))
      return EBML.element(
        0xAE, common, EBML.element(0x83, [2]), EBML.element(0x86, Array("A_OPUS".utf8)),
        EBML.element(0x63A2, head), EBML.element(0x56BB, EBML.number(preRoll)), audio)
    }
  }

  private mutating func takeCluster() -> [UInt8] {
    let sorted = frames.enumerated().sorted {
      ($0.element.milliseconds, $0.offset) < ($1.element.milliseconds, $1.offset)
    }.map(\.element)
    frames = []
    guard let at = sorted.first?.milliseconds else { return [] }
    let videos = Set(tracks.filter(\.isVideo).map(\.number))
    if let key = sorted.first(where: { videos.isEmpty || $0.isKey && videos.contains($0.number) }) {
      cues.append(Cue(milliseconds: key.milliseconds, number: key.number, position: written - Self.base))
    }
    let blocks = sorted.map { frame in
      let relative = UInt16(clamping: frame.milliseconds - at)
      return EBML.element(
        0xA3,
        [0x80 | frame.number, UInt8(relative >> 8), UInt8(relative & 255), frame.isKey ? 0x80 : 0], frame.bytes)
    }
    let bytes = EBML.element(Self.cluster, EBML.element(0xE7, EBML.number(UInt64(at))), Array(blocks.joined()))
    written += bytes.count
    return bytes
  }
}

extension WebMWriter.Track.Format {
  /// The format that the first frame of a track tells; nil if it does not say it, or WebM has no such codec.
  init?(_ codec: RecordingTrack.Codec, firstFrame bytes: [UInt8]) {
    switch codec {
    case .opus:
      guard let first = bytes.first else { return nil }
      // RFC 6716 section 3.1.
      self = .opus(channels: first & 4 == 0 ? 1 : 2)
    case .vp8:
      guard let (width, height) = Self.vp8Size(bytes) else { return nil }
      self = .video(codec: "V_VP8", width: width, height: height)
    case .vp9:
      guard let (width, height) = Self.vp9Size(bytes) else { return nil }
      self = .video(codec: "V_VP9", width: width, height: height)
    case .av1, .h264: return nil
    }
  }

  /// The size of a VP8 key frame, in pixels (RFC 6386 section 9.1).
  static func vp8Size(_ frame: [UInt8]) -> (Int, Int)? {
    guard frame.count >= 10, frame[0] & 1 == 0, frame[3...5] == [0x9D, 0x01, 0x2A] else { return nil }
    return ((Int(frame[7]) << 8 | Int(frame[6])) & 0x3FFF, (Int(frame[9]) << 8 | Int(frame[8])) & 0x3FFF)
  }

  /// The size of a VP9 key frame, in pixels (VP9 bitstream specification, section 6.2).
  static func vp9Size(_ frame: [UInt8]) -> (Int, Int)? {
    var bits = Bits(frame)
    guard bits.take(2) == 2, let low = bits.take(1), let high = bits.take(1) else { return nil }
    let profile = high << 1 | low
    if profile == 3, bits.take(1) != 0 { return nil }
    // show_existing_frame and frame_type are 0, then show_frame and error_resilient_mode.
    guard bits.take(1) == 0, bits.take(1) == 0, bits.take(2) != nil, bits.take(24) == 0x498342 else { return nil }
    if profile >= 2, bits.take(1) == nil { return nil }
    guard let space = bits.take(3) else { return nil }
    if space != 7 {
      guard bits.take(profile & 1 == 1 ? 4 : 1) != nil else { return nil }
    } else if profile & 1 == 1 {
      guard bits.take(1) != nil else { return nil }
    }
    guard let width = bits.take(16), let height = bits.take(16) else { return nil }
    return (width + 1, height + 1)
  }

  private struct Bits {
    private let bytes: [UInt8]
    private var place = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(_ count: Int) -> Int? {
      guard place + count <= 8 * bytes.count else { return nil }
      var value = 0
      for bit in place..<place + count {
        let shift = 7 - bit % 8
        value = value << 1 | Int((bytes[bit / 8] >> shift) & 1)
      }
      place += count
      return value
    }
  }
}

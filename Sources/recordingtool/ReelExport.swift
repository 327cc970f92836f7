import ConclaveClient

/// One reel on its way into a WebM file: segments go in, bytes come out. Pictures that refer to one that is missing are left out.
struct ReelExport {
  /// Bytes of the head: for about 30 tracks.
  static let room = 4_096

  private var writer: WebMWriter
  private var numbers: [UInt8: UInt8] = [:]
  /// Tracks that WebM or its head has no place for, by their numbers in the recording.
  private(set) var leftOut: Set<UInt8> = []
  private var gates: [UInt8: PictureGate] = [:]
  private var end: Int64

  /// - Parameter start: the time of 0, in microseconds since 1970: the same for all reels that are to be played together.
  init(start: Int64) {
    writer = WebMWriter(start: start, room: Self.room)
    end = start
  }

  /// Whether something can be played.
  var isEmpty: Bool { numbers.isEmpty }
  var hasVideo: Bool { writer.tracks.contains(where: \.isVideo) }
  var hasSound: Bool { writer.tracks.contains { !$0.isVideo } }

  /// The first bytes of the file, until `finish` replaces them.
  var head: [UInt8] { writer.head }

  /// The bytes to append.
  mutating func add(_ segment: RecordingSegment) -> [UInt8] {
    let tracks = Dictionary(segment.tracks.map { ($0.number, $0) }) { first, _ in first }
    for track in segment.tracks where gates[track.number] == nil { gates[track.number] = PictureGate() }
    for gap in segment.gaps {
      for n in gates.keys where gap.track == nil || gap.track == n { gates[n]?.note(gap) }
    }
    var bytes: [UInt8] = []
    for frame in segment.frames {
      guard let track = tracks[frame.track], track.codec == .opus || gates[frame.track]?.takes(frame) == true,
        let number = number(of: track, frame)
      else { continue }
      bytes += writer.add(number, isKey: frame.isKeyFrame, time: frame.time, frame.bytes)
    }
    end = max(end, segment.end)
    return bytes
  }

  mutating func finish() -> (tail: [UInt8], head: [UInt8]) { writer.finish(end: end) }

  /// The number in the file; nil for a track that is left out, and until its first frame says what it is.
  private mutating func number(of track: RecordingTrack, _ frame: RecordingFrame) -> UInt8? {
    if let number = numbers[track.number] { return number }
    guard !leftOut.contains(track.number) else { return nil }
    guard let format = WebMWriter.Track.Format(track.codec, firstFrame: frame.bytes) else {
      if frame.isKeyFrame { leftOut.insert(track.number) }
      return nil
    }
    let number = UInt8(numbers.count + 1)
    guard writer.add(WebMWriter.Track(number: number, format: format, clockRate: track.clockRate)) else {
      leftOut.insert(track.number)
      return nil
    }
    numbers[track.number] = number
    return number
  }
}

/// Which pictures of a track can be decoded: a picture refers to those before it, so behind a gap, and at the beginning, a key frame is waited for.
struct PictureGate {
  private var isWaiting = true
  private var ends: [Int64] = []

  /// A gap, before the pictures behind it.
  mutating func note(_ gap: RecordingGap) { ends.append(gap.to) }

  /// Whether the next picture can be decoded.
  mutating func takes(_ frame: RecordingFrame) -> Bool {
    if ends.contains(where: { $0 <= frame.time }) { isWaiting = true }
    ends.removeAll { $0 <= frame.time }
    if frame.isKeyFrame { isWaiting = false }
    return !isWaiting
  }
}

import MediaModel

/// This device's tracks in one stay, and which of its sources the person has muted. A mute outlives the stay: after a rejoin the source's new track is muted,
/// too.
struct OwnTracks {
  private(set) var sources: [UInt8: MediaSource] = [:]
  private var muted: Set<MediaSource> = []

  /// An offer was answered; returns whether each of its tracks is muted.
  mutating func offer(_ offered: [OfferedTrack], answered: [(mid: String, track: TrackID)]) -> [UInt8: Bool] {
    let offered = Dictionary(offered.map { ($0.mid, $0.source) }) { first, _ in first }
    var tracks: [UInt8: Bool] = [:]
    for (mid, track) in answered {
      guard let source = offered[mid] ?? sources[track.index] else { continue }
      sources[track.index] = source
      tracks[track.index] = muted.contains(source)
    }
    return tracks
  }

  mutating func setMuted(_ isMuted: Bool, track: UInt8) {
    guard let source = sources[track] else { return }
    if isMuted { muted.insert(source) } else { muted.remove(source) }
  }

  /// The new stay's tracks have other numbers.
  mutating func beginStay() { sources = [:] }

  /// The slots in which an offer requests sound: the mids of its audio sections.
  static func soundSlots(in sdp: String) -> Set<String> {
    var slots: Set<String> = []
    var isAudio = false
    for line in sdp.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") { isAudio = line.hasPrefix("m=audio ") }
      if isAudio, line.hasPrefix("a=mid:") { slots.insert(String(line.dropFirst("a=mid:".count))) }
    }
    return slots
  }
}

import CallMessages
import Contract
import MediaModel

/// All tracks that a participant has ever sent: an id keeps its mid and source through pauses, and is never reused (protocol section 6).
struct TrackTable {
  struct Track {
    var id: TrackID
    var mid: String
    var source: TrackSource
    var muted = false
    /// Since when it has been sent; nil during a pause.
    var liveSince: Timestamp?

    var state: TrackState { TrackState(track: id, source: source, muted: muted) }
  }

  /// A sending section of an offer.
  struct Wanted: Hashable {
    var mid: String
    var source: TrackSource
    /// It may end another participant's screen.
    var replaces: Bool
  }

  let participant: ParticipantNumber
  private(set) var tracks: [Track] = []

  init(participant: ParticipantNumber, restoring tracks: [Track] = []) {
    self.participant = participant
    self.tracks = tracks
  }

  var live: [Track] { tracks.filter { $0.liveSince != nil } }

  func live(_ id: TrackID) -> Track? { tracks.first { $0.id == id && $0.liveSince != nil } }

  func isLive(mid: String, source: TrackSource) -> Bool {
    tracks.contains { $0.mid == mid && $0.source == source && $0.liveSince != nil }
  }

  /// Whether enough ids are left for all of `wanted`.
  func hasRoom(for wanted: [Wanted]) -> Bool {
    tracks.count + wanted.count { kept(for: $0) == nil } <= 255
  }

  /// Makes exactly `wanted` live. Needs `hasRoom(for: wanted)`. Returns the tracks that ended and that began, and all names in the order of `wanted`.
  mutating func update(to wanted: [Wanted], now: Timestamp) -> (removed: [Track], added: [Track], names: [NamedTrack]) {
    var removed: [Track] = []
    var added: [Track] = []
    for i in tracks.indices where tracks[i].liveSince != nil {
      let track = tracks[i]
      if !wanted.contains(where: { $0.mid == track.mid && $0.source == track.source }) {
        tracks[i].liveSince = nil
        removed.append(track)
      }
    }
    var names: [NamedTrack] = []
    for want in wanted {
      let i = index(of: want)
      if tracks[i].liveSince == nil {
        tracks[i].liveSince = now
        added.append(tracks[i])
      }
      names.append(
        NamedTrack(mid: want.mid, track: tracks[i].id, source: want.source, muted: tracks[i].muted))
    }
    return (removed, added, names)
  }

  /// The m-line's last track, if it had this source. A source that was interrupted by another one gets a new track.
  private func kept(for want: Wanted) -> Int? {
    tracks.lastIndex { $0.mid == want.mid }.flatMap { tracks[$0].source == want.source ? $0 : nil }
  }

  private mutating func index(of want: Wanted) -> Int {
    if let i = kept(for: want) { return i }
    let id = TrackID(participant: participant, index: UInt8(tracks.count + 1))
    tracks.append(Track(id: id, mid: want.mid, source: want.source))
    return tracks.count - 1
  }

  /// Returns the changed track; nil if nothing changes or there is no such live track.
  mutating func mute(_ id: TrackID, _ muted: Bool) -> Track? {
    guard let i = tracks.firstIndex(where: { $0.id == id && $0.liveSince != nil }), tracks[i].muted != muted else {
      return nil
    }
    tracks[i].muted = muted
    return tracks[i]
  }

  /// Ends one track; returns it if it was live.
  mutating func end(_ id: TrackID) -> Track? {
    guard let i = tracks.firstIndex(where: { $0.id == id && $0.liveSince != nil }) else { return nil }
    defer { tracks[i].liveSince = nil }
    return tracks[i]
  }

  /// Ends all tracks; returns those that were live.
  mutating func endAll() -> [Track] {
    defer { for i in tracks.indices { tracks[i].liveSince = nil } }
    return live
  }
}

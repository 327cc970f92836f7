import MediaModel

/// The tracks of a call in the order in which they get slots. Computed once for all peers of the call, after its tracks or speakers have changed.
struct Ranking {
  var audio = RankedTracks()
  var video = RankedTracks()
  private var visits: UInt64 = 0

  init() {}

  /// Held peers' tracks are left out.
  init(of peers: some Sequence<Peer>) {
    // The most tracks for which the peer with the fewest slots has room, including its own.
    var fewest = Int.max
    for peer in peers {
      visits &+= 1
      if !peer.audioSlots.isEmpty {
        fewest = min(fewest, peer.audioSlots.count + peer.upTracks.count { $0.kind == .audio })
      }
      audio.expect(peer, slots: peer.audioSlots.count, wishes: 0)
      video.expect(peer, slots: peer.videoSlots.count, wishes: peer.wishes.videos.count)
      guard !peer.isHeld else { continue }
      for track in peer.upTracks where track.kind == .audio { audio.append(track) }
      for track in peer.upTracks where track.kind == .video { video.append(track) }
    }
    expectMuted(by: peers)
    audio.sort()
    audio.isShort = audio.count > fewest
    video.sort()
  }

  /// The peers and tracks that were examined since the last call.
  mutating func takeVisits() -> UInt64 {
    defer { visits = 0 }
    return visits &+ audio.takeVisits() &+ video.takeVisits()
  }

  /// A peer that leaves out tracks makes its slots depend on as many more.
  private mutating func expectMuted(by peers: some Sequence<Peer>) {
    guard peers.contains(where: { !$0.wishes.muted.isEmpty }) else { return }
    var tracks: [ParticipantNumber: Int] = [:]
    for peer in peers { tracks[peer.configuration.participant] = peer.upTracks.count { $0.kind == .audio } }
    for peer in peers where !peer.wishes.muted.isEmpty {
      visits &+= UInt64(peer.wishes.muted.count)
      audio.expect(peer, slots: 0, wishes: peer.wishes.muted.reduce(0) { $0 + (tracks[$1] ?? 0) })
    }
  }

  /// The effect of a new ranking on the peers of a call.
  enum Change: Comparable {
    case none
    /// Only tracks that no slot can reach: concerns only peers that cannot receive some codec.
    case beyondReach
    case withinReach
  }

  func change(to new: Ranking, need: SFUConfiguration) -> Change {
    let isWithin =
      audio.differsWithinReach(of: new.audio, need: need.voices)
      || video.differsWithinReach(of: new.video, need: need.videoNeed)
    return isWithin ? .withinReach : .beyondReach
  }
}

/// A track's rank among those of its kind: unmuted screens and their sound first, then the voices, then the latest speakers; muted tracks after all
/// others.
struct Rank: Comparable {
  /// 0: an unmuted screen, 1: another unmuted track; 2 and 3: the same, muted.
  let group: UInt8
  /// The microphone of one of the call's voices.
  let isVoice: Bool
  private let spokeAt: Instant
  private let track: TrackID

  init(_ track: UpTrack) {
    group = (track.isMuted ? 2 : 0) | (track.isScreen ? 0 : 1)
    isVoice = track.isVoice
    // A voice that was just let in becomes a speaker within 300 ms.
    let voice = track.peer.voice
    spokeAt = isVoice ? max(voice.spokeAt, voice.since ?? voice.spokeAt) : voice.spokeAt
    self.track = track.track
  }

  static func < (a: Rank, b: Rank) -> Bool {
    if a.group != b.group { return a.group < b.group }
    if a.isVoice != b.isVoice { return a.isVoice }
    if a.spokeAt != b.spokeAt { return a.spokeAt > b.spokeAt }
    return a.track < b.track
  }
}

/// The ranked tracks of one kind.
struct RankedTracks {
  struct Place {
    let rank: Rank
    let formatKey: Int
    let track: UpTrack

    init(_ track: UpTrack) {
      rank = Rank(track)
      formatKey = track.formatKey
      self.track = track
    }

    /// Whether the same track has the same claim to slots.
    func isAlike(_ other: Place) -> Bool {
      track === other.track && rank.group == other.rank.group && rank.isVoice == other.rank.isVoice
        && formatKey == other.formatKey
    }
  }

  private var places: [Place] = []
  /// The bits of the call's format keys that the tracks have.
  private var formats: UInt64 = 0
  /// Some tracks have a format beyond those that the call can have.
  private var hasUnkeyed = false
  /// Some peer has too few slots for all tracks.
  var isShort = false
  /// The most slots, own tracks and wishes that one peer has. No slot depends on a track beyond their sum.
  private var most = (slots: 0, own: 0, wishes: 0)
  /// For each set of formats that some peer carries, the tracks that it can receive, and those that it cannot. Most peers of a call carry the same
  /// formats.
  private var parts: [UInt64: (carried: [Place], others: [UpTrack])] = [:]
  private var byID: [TrackID: Place]?
  private var visits: UInt64 = 0

  var count: Int { places.count }
  private var reach: Int { most.slots + most.own + most.wishes + 1 }

  /// - Parameter wishes: the tracks that the peer has wishes for.
  mutating func expect(_ peer: Peer, slots: Int, wishes: Int) {
    most = (max(most.slots, slots), max(most.own, peer.upTracks.count), max(most.wishes, wishes))
  }

  mutating func append(_ track: UpTrack) {
    places.append(Place(track))
    if track.formatKey < 0 { hasUnkeyed = true } else { formats |= 1 << UInt64(track.formatKey) }
  }

  /// The tracks that were examined since the last call.
  mutating func takeVisits() -> UInt64 {
    defer { visits = 0 }
    return visits
  }

  mutating func sort() {
    var comparisons: UInt64 = 0
    places.sort {
      comparisons &+= 1
      return $0.rank < $1.rank
    }
    visits &+= comparisons
  }

  /// Examines no more tracks than slots can reach.
  func differsWithinReach(of new: RankedTracks, need: Int) -> Bool {
    let reach = new.reach
    return formats != new.formats || hasUnkeyed != new.hasUnkeyed
      || min(count, reach + need) != min(new.count, reach + need)
      || !places.prefix(reach).elementsEqual(new.places.prefix(reach)) { $0.isAlike($1) }
  }

  /// Whether a peer that carries these formats can receive all tracks.
  func areAll(in carried: UInt64) -> Bool { formats & ~carried == 0 && !hasUnkeyed }

  /// The tracks of others that a peer with slots for these formats cannot receive.
  mutating func unsupported(_ peer: Peer, carried: UInt64, _ wishes: Wishes) -> [TrackID] {
    if areAll(in: carried) { return [] }
    let others = parts(carried).others
    visits &+= UInt64(others.count)
    return others.filter { $0.peer !== peer && wishes.videos[$0.track]?.isPaused != true }.map(\.track).sorted()
  }

  /// The first `count` tracks of others that a peer with slots for these formats wants, best first. A higher priority comes first among
  /// tracks of which both or neither are muted, and both or neither are screens.
  mutating func first(_ count: Int, for peer: Peer, carried: UInt64, _ wishes: Wishes) -> [UpTrack] {
    let usable = areAll(in: carried) ? places : parts(carried).carried
    var found: [Place] = []
    found.reserveCapacity(count)
    for place in usable {
      guard found.count < count else { break }
      visits &+= 1
      guard place.track.peer !== peer, !wishes.mutes(place.track) else { continue }
      if !wishes.videos.isEmpty, let wish = wishes.videos[place.track.track], wish.isPaused || wish.priority != 0 {
        continue
      }
      found.append(place)
    }
    let wished = wished(wishes, by: peer, carried: carried)
    guard !wished.isEmpty else { return found.map(\.track) }
    found += wished
    // The closure must not touch `self`, which is being changed.
    var comparisons: UInt64 = 0
    found.sort { a, b in
      comparisons &+= 1
      if a.rank.group != b.rank.group { return a.rank.group < b.rank.group }
      let (first, second) = (wishes.priority(of: a.track), wishes.priority(of: b.track))
      return first != second ? first > second : a.rank < b.rank
    }
    visits &+= comparisons
    return found.prefix(count).map(\.track)
  }

  /// How many tracks of others the peer has paused.
  mutating func paused(_ wishes: Wishes, by peer: Peer) -> Int {
    guard !wishes.videos.isEmpty else { return 0 }
    let byID = index()
    visits &+= UInt64(wishes.videos.count)
    return wishes.videos.count { id, wish in
      guard wish.isPaused, let place = byID[id] else { return false }
      return place.track.peer !== peer
    }
  }

  /// The tracks that have their own priority.
  private mutating func wished(_ wishes: Wishes, by peer: Peer, carried: UInt64) -> [Place] {
    guard !wishes.videos.isEmpty else { return [] }
    let byID = index()
    visits &+= UInt64(wishes.videos.count)
    return wishes.videos.compactMap { id, wish in
      guard !wish.isPaused, wish.priority != 0, let place = byID[id], place.track.peer !== peer else { return nil }
      return Self.isCarried(place.track, by: carried) ? place : nil
    }
  }

  private mutating func index() -> [TrackID: Place] {
    if let byID { return byID }
    visits &+= UInt64(places.count)
    let new = Dictionary(places.map { ($0.track.track, $0) }, uniquingKeysWith: { first, _ in first })
    byID = new
    return new
  }

  private mutating func parts(_ carried: UInt64) -> (carried: [Place], others: [UpTrack]) {
    if let known = parts[carried] { return known }
    visits &+= UInt64(places.count)
    let usable = places.filter { Self.isCarried($0.track, by: carried) }
    let others = places.map(\.track).filter { !Self.isCarried($0, by: carried) }
    parts[carried] = (usable, others)
    return (usable, others)
  }

  private static func isCarried(_ track: UpTrack, by formats: UInt64) -> Bool {
    track.formatKey >= 0 && formats >> UInt64(track.formatKey) & 1 == 1
  }
}

extension Wishes {
  /// The wishes that apply to audio.
  var forAudio: Wishes { Wishes(lastN: .max, muted: muted) }

  func mutes(_ track: UpTrack) -> Bool {
    !muted.isEmpty && track.kind == .audio && muted.contains(track.track.participant)
  }

  func priority(of track: UpTrack) -> Int { videos.isEmpty ? 0 : videos[track.track]?.priority ?? 0 }
}

extension UpTrack {
  var isVoice: Bool { isMicrophone && peer.voice.since != nil }
  var isScreen: Bool { description.source == .screen || description.source == .screenAudio }
}

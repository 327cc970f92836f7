import MediaModel

/// The peers whose microphones come before all others in a call with more of them than slots: those who spoke last.
///
/// A newcomer is let in as soon as it speaks, but displaces nobody within a word. While as many speak as there are places, they take turns, for a claim to speak costs nothing:
/// somebody who waits gets the place that was held longest, and each keeps one for `turn` on average. A newcomer waits for one change of places, and members wait for no guest.
/// Peers that are only presumed to speak, for their clients tell nothing, stand between members and guests.
/// Somebody who leaves the call and joins again has held its place, and waits, as if it had stayed. A guest who joins again is another user.
struct Voices {
  /// Silence after which one may be displaced, at the earliest so long after it was let in.
  static let silence = Duration.milliseconds(800)
  static let tenure = Duration.seconds(2)
  static let turn = Duration.seconds(10)
  /// Somebody who speaks takes a place from somebody who speaks at the earliest after this time: not with a cough.
  static let patience = Duration.milliseconds(700)

  private(set) var peers: ContiguousArray<Peer> = []
  /// The one that gets the next place, among those that asked for one since the last.
  private var next: Peer?
  private var lastChange = Instant(nanoseconds: 0)
  /// Members who left the call: for how long they had a place, and from when on they wait when they come again. The first left first.
  private var departures: [(member: Int, held: Duration, restedAt: Instant)] = []
  private static let maximumDepartures = 64

  /// Lets a peer in that speaks. Returns whether there was a place.
  mutating func admit(_ peer: Peer, most: Int, now: Instant) -> Bool {
    peer.voiceWait.ask(now)
    if let next, next !== peer, next.voiceWait.isAsking(now), next.precedes(peer) { return false }
    next = peer
    if peers.count < most {
      peers.append(peer)
    } else {
      guard let place = silentPlace(now) ?? heldPlace(for: peer, now) else { return false }
      peers[place].leaveVoices(now)
      peers[place] = peer
    }
    next = nil
    peer.voiceSince = now
    return true
  }

  mutating func remove(_ peer: Peer, now: Instant) {
    if next === peer { next = nil }
    guard peer.voiceSince != nil else { return }
    peer.leaveVoices(now)
    peers.removeAll { $0 === peer }
  }

  /// The place of the one that has been silent for longest.
  private func silentPlace(_ now: Instant) -> Int? {
    var silent: Int?
    for i in peers.indices where peers[i].voiceHeldUntil <= now {
      if silent.map({ peers[i].speech.lastLoud < peers[$0].speech.lastLoud }) ?? true { silent = i }
    }
    return silent
  }

  /// The peer joins the call, or joins it again.
  mutating func arrive(_ peer: Peer) {
    guard let known = departures.firstIndex(where: { $0.member == peer.configuration.member }) else { return }
    let departure = departures.remove(at: known)
    peer.voiceCredit = departure.held
    peer.voiceWait.restedAt = departure.restedAt
  }

  /// The peer leaves the call.
  mutating func depart(_ peer: Peer, now: Instant) {
    let held = peer.voiceTime(now) ?? .zero
    remove(peer, now: now)
    departures.removeAll { $0.restedAt <= now }
    guard peer.voiceWait.restedAt > now else { return }
    if departures.count == Self.maximumDepartures { departures.removeFirst() }
    departures.append((peer.configuration.member, min(held, Self.turn), peer.voiceWait.restedAt))
  }

  /// The place of somebody who speaks: of those with the least right to it the one who has held it for longest.
  private mutating func heldPlace(for peer: Peer, _ now: Instant) -> Int? {
    var least = VoiceRight.member
    for other in peers { least = max(least, other.voiceRight) }
    var (longest, most) = (Int?.none, Duration.zero)
    for i in peers.indices where peers[i].voiceRight == least {
      guard let held = peers[i].voiceTime(now), held >= Self.tenure, held > most else { continue }
      (longest, most) = (i, held)
    }
    if peer.voiceRight < least { return longest }
    guard longest != nil, peer.voiceWait.since.advanced(by: Self.patience) <= now,
      lastChange.advanced(by: min(Self.tenure, Self.turn / peers.count)) <= now
    else { return nil }
    lastChange = now
    return longest
  }
}

/// The order of claims to a place: somebody with a better one takes the place of the last at once.
enum VoiceRight: Int, Comparable {
  case member, presumed, guest

  static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// A peer's place in the order of those that wait to be voices.
struct VoiceWait {
  /// It asks with each packet while it speaks. Words have gaps.
  private static let gap = Duration.milliseconds(300)

  /// When it began to speak.
  private(set) var since = Instant(nanoseconds: 0)
  private var asked = Instant(nanoseconds: 0)
  /// The end of its last place, later by the time for which it had that: it waits from then on.
  fileprivate(set) var restedAt = Instant(nanoseconds: 0)

  mutating func ask(_ now: Instant) {
    if asked.advanced(by: Voices.silence) < now { since = now }
    asked = now
  }

  /// It lost the place that it had so long.
  mutating func had(_ time: Duration, now: Instant) { restedAt = now.advanced(by: min(time, Voices.turn)) }

  func isAsking(_ now: Instant) -> Bool { now <= asked.advanced(by: Self.gap) }

  /// The one with the least is next.
  var claim: Instant { max(since, restedAt) }
}

extension Peer {
  fileprivate var voiceRight: VoiceRight { configuration.isGuest ? .guest : isPresumed ? .presumed : .member }

  /// Until when no other takes its place among the voices, as far as is known now.
  var voiceHeldUntil: Instant {
    max(speech.lastLoud.advanced(by: Voices.silence), (voiceSince ?? speech.lastLoud).advanced(by: Voices.tenure))
  }

  /// For how long it has had its place; nil for none.
  fileprivate func voiceTime(_ now: Instant) -> Duration? { voiceSince.map { $0.duration(to: now) + voiceCredit } }

  fileprivate func leaveVoices(_ now: Instant) {
    if let held = voiceTime(now) { voiceWait.had(held, now: now) }
    voiceSince = nil
    voiceCredit = .zero
  }

  fileprivate func precedes(_ other: Peer) -> Bool {
    if voiceRight != other.voiceRight { return voiceRight < other.voiceRight }
    return voiceWait.claim < other.voiceWait.claim
  }
}

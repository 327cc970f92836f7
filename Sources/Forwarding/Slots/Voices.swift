import MediaModel

/// The peers whose microphones come before all others in a call with more microphones than slots: those who spoke last.
///
/// A newcomer is let in as soon as it speaks, but displaces nobody within a word. While all places are taken by speakers, they take turns, because claiming to speak
/// costs nothing: a waiting peer gets the place that was held longest, and each keeps one for `turn` on average. A newcomer waits for one change of places, and
/// members do not wait for guests. Peers that are only presumed to speak, because their clients report nothing, rank between members and guests. A member who leaves
/// the call and joins again counts as having held a place, and waits, as if it had stayed. A guest who joins again is another user.
struct Voices {
  /// Silence after which a voice may be displaced, once it has been in for `tenure`.
  static let silence = Duration.milliseconds(800)
  static let tenure = Duration.seconds(2)
  static let turn = Duration.seconds(10)
  /// A speaker takes the place of another speaker only after speaking for this long: a cough does not suffice.
  static let patience = Duration.milliseconds(700)

  private(set) var peers: ContiguousArray<Peer> = []
  /// The peer that gets the next place, among those that have asked since the last change.
  private var next: Peer?
  private var lastChange = Instant(nanoseconds: 0)
  /// Members who left the call: how long each had a place, and from when on it waits if it returns. Oldest first.
  private var departures: [(member: Int, held: Duration, restedAt: Instant)] = []
  private static let maximumDepartures = 64

  /// Lets in a peer that speaks. Returns whether there was a place.
  mutating func admit(_ peer: Peer, most: Int, now: Instant) -> Bool {
    peer.voice.wait.ask(now)
    if let next, next !== peer, next.voice.wait.isAsking(now), next.precedes(peer) { return false }
    next = peer
    if peers.count < most {
      peers.append(peer)
    } else {
      guard let place = silentPlace(now) ?? heldPlace(for: peer, now) else { return false }
      peers[place].leaveVoices(now)
      peers[place] = peer
    }
    next = nil
    peer.voice.since = now
    return true
  }

  mutating func remove(_ peer: Peer, now: Instant) {
    if next === peer { next = nil }
    guard peer.voice.since != nil else { return }
    peer.leaveVoices(now)
    peers.removeAll { $0 === peer }
  }

  /// The place of the voice that has been silent longest.
  private func silentPlace(_ now: Instant) -> Int? {
    var silent: Int?
    for i in peers.indices where peers[i].voiceHeldUntil <= now {
      if silent.map({ peers[i].voice.speech.lastLoud < peers[$0].voice.speech.lastLoud }) ?? true { silent = i }
    }
    return silent
  }

  /// The peer joins the call, or joins it again.
  mutating func arrive(_ peer: Peer) {
    guard let known = departures.firstIndex(where: { $0.member == peer.configuration.member }) else { return }
    let departure = departures.remove(at: known)
    peer.voice.credit = departure.held
    peer.voice.wait.restedAt = departure.restedAt
  }

  /// The peer leaves the call.
  mutating func depart(_ peer: Peer, now: Instant) {
    let held = peer.voiceTime(now) ?? .zero
    remove(peer, now: now)
    departures.removeAll { $0.restedAt <= now }
    guard peer.voice.wait.restedAt > now else { return }
    if departures.count == Self.maximumDepartures { departures.removeFirst() }
    departures.append((peer.configuration.member, min(held, Self.turn), peer.voice.wait.restedAt))
  }

  /// The place of a voice that speaks: among those with the least right to it, the one that has held it longest.
  private mutating func heldPlace(for peer: Peer, _ now: Instant) -> Int? {
    var least = VoiceRight.member
    for other in peers { least = max(least, other.voiceRight) }
    var (longest, most) = (Int?.none, Duration.zero)
    for i in peers.indices where peers[i].voiceRight == least {
      guard let held = peers[i].voiceTime(now), held >= Self.tenure, held > most else { continue }
      (longest, most) = (i, held)
    }
    if peer.voiceRight < least { return longest }
    guard longest != nil, peer.voice.wait.since.advanced(by: Self.patience) <= now,
      lastChange.advanced(by: min(Self.tenure, Self.turn / peers.count)) <= now
    else { return nil }
    lastChange = now
    return longest
  }
}

/// The order of claims to a place. A peer with a better claim takes the place of the lowest one immediately.
enum VoiceRight: Int, Comparable {
  case member, presumed, guest

  static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

/// A peer's position in the order of those that wait to be voices.
struct VoiceWait {
  /// A peer asks with each packet while it speaks. Words have gaps.
  private static let gap = Duration.milliseconds(300)

  /// When it began to speak.
  private(set) var since = Instant(nanoseconds: 0)
  private var asked = Instant(nanoseconds: 0)
  /// The end of its last place plus the time for which it had that. It waits from then on.
  fileprivate(set) var restedAt = Instant(nanoseconds: 0)

  mutating func ask(_ now: Instant) {
    if asked.advanced(by: Voices.silence) < now { since = now }
    asked = now
  }

  /// It lost the place that it had for this long.
  mutating func had(_ time: Duration, now: Instant) { restedAt = now.advanced(by: min(time, Voices.turn)) }

  func isAsking(_ now: Instant) -> Bool { now <= asked.advanced(by: Self.gap) }

  /// The peer with the earliest claim is next.
  var claim: Instant { max(since, restedAt) }
}

extension Peer {
  fileprivate var voiceRight: VoiceRight { configuration.isGuest ? .guest : voice.isPresumed ? .presumed : .member }

  /// The time until which no other peer takes its place among the voices, as far as is known now.
  var voiceHeldUntil: Instant {
    max(
      voice.speech.lastLoud.advanced(by: Voices.silence),
      (voice.since ?? voice.speech.lastLoud).advanced(by: Voices.tenure))
  }

  /// How long it has had its place; nil without one.
  fileprivate func voiceTime(_ now: Instant) -> Duration? { voice.since.map { $0.duration(to: now) + voice.credit } }

  fileprivate func leaveVoices(_ now: Instant) {
    if let held = voiceTime(now) { voice.wait.had(held, now: now) }
    voice.since = nil
    voice.credit = .zero
  }

  fileprivate func precedes(_ other: Peer) -> Bool {
    if voiceRight != other.voiceRight { return voiceRight < other.voiceRight }
    return voice.wait.claim < other.voice.wait.claim
  }
}

import MediaModel
import Octets
import RTP

/// The voices and the speakers of a call, by the levels of its microphones' packets.
final class CallSpeakers {
  /// The consequences of a packet.
  struct Change: OptionSet {
    let rawValue: UInt8
    /// A timer has to determine the speakers.
    static let due = Change(rawValue: 1)
    /// A peer was let in among the voices.
    static let voices = Change(rawValue: 2)
  }

  /// The level of a microphone that is guessed to speak: enough for a speaker, but lower than speech, so that known speakers come first.
  private static let guessedLevel: UInt8 = 49
  /// After this time without a level, the sizes of packets count.
  private static let levelTime = Duration.seconds(5)

  private var selection = SpeakerSelection()
  private(set) var voices = Voices()
  /// Peers that may be speakers: they have been loud enough at some time since the speakers were last determined, or were at that time.
  private(set) var loud: ContiguousArray<Peer> = []
  /// No earlier than this are the speakers determined again.
  private(set) var next = Instant(nanoseconds: 0)
  /// A microphone was heard and the interval is over.
  var isDue = false
  /// Peers and entries that were examined since the last `takeVisits`.
  private(set) var visits: UInt64 = 0

  /// The first is the dominant speaker.
  var current: [ParticipantNumber] { selection.current }

  /// When a timer must determine the speakers.
  var deadline: Instant? { isDue ? Instant(nanoseconds: 0) : current.isEmpty ? nil : next }

  func takeVisits() -> UInt64 {
    defer { visits = 0 }
    return visits
  }

  /// A peer joined the call, or joined it again.
  /// - Parameter peers: in the call with it.
  func arrive(_ peer: Peer, peers: Int) {
    voices.arrive(peer)
    loud.reserveCapacity(peers)
  }

  /// The peer leaves the call.
  func depart(_ peer: Peer, now: Instant) {
    voices.depart(peer, now: now)
    loud.removeAll { $0 === peer }
  }

  /// A peer's microphone fell silent for good.
  func forget(_ peer: Peer, now: Instant) {
    peer.voice.loudness = Loudness()
    peer.voice.speech = SpeechActivity()
    voices.remove(peer, now: now)
  }

  /// Reads the audio level of a microphone's packet (RFC 6464). It uses the level and not the V bit, because browsers always set
  /// that. An element whose length is not one byte is not a level: an empty one may be at the packet's end.
  /// - Parameter most: the voices that a call may have.
  func hear(_ packet: borrowing Packet, of peer: Peer, most: Int, now: Instant) -> Change {
    let id = peer.configuration.extensions.audioLevel
    guard id != 0, let element = packet.extensions?.element(id, in: packet.bytes.bytes), element.length == 1 else {
      if let last = peer.voice.levelAt, last.duration(to: now) < Self.levelTime { return [] }
      return guess(packet, of: peer, isPresumed: true, most: most, now: now)
    }
    let level = packet.bytes.bytes[element.offset] & 0x7f
    if level < 127 {
      peer.voice.levelAt = now
      peer.voice.isPresumed = false
    } else if peer.voice.levelAt == nil {
      // Some senders have the extension and never measure anything.
      return guess(packet, of: peer, isPresumed: false, most: most, now: now)
    }
    return hear(level: level, of: peer, most: most, now: now)
  }

  /// Uses the size of a microphone's packet in place of its level.
  /// - Parameter isPresumed: whether it counts as speech if its size says nothing.
  @inline(never)
  private func guess(
    _ packet: borrowing Packet, of peer: Peer, isPresumed: Bool, most: Int, now: Instant
  ) -> Change {
    let sound = peer.voice.guess.heard(packet.payload.count, isEncrypted: peer.isEncrypted, now: now)
    peer.voice.isPresumed = isPresumed && sound == .presumed
    let isSpeech = isPresumed ? sound != .quiet : sound == .speech && peer.voice.guess.differs
    return hear(level: isSpeech ? Self.guessedLevel : 127, isGuess: true, of: peer, most: most, now: now)
  }

  /// - Parameter level: 0 is the loudest, 127 silence.
  func hear(level: UInt8, isGuess: Bool = false, of peer: Peer, most: Int, now: Instant) -> Change {
    var change: Change = []
    peer.voice.loudness.heard(level: level, now: now)
    peer.voice.speech.heard(level: level, isGuess: isGuess, now: now)
    if peer.voice.since == nil, peer.voice.speech.isSpeaking {
      visits &+= UInt64(voices.peers.count)
      if voices.admit(peer, most: most, now: now) { change.insert(.voices) }
    }
    guard peer.voice.loudness.value(at: now) >= SpeakerSelection.threshold else { return change }
    if !peer.voice.isLoud {
      peer.voice.isLoud = true
      loud.append(peer)
    }
    guard now >= next, !isDue else { return change }
    // The next timer pass examines all loud peers; this packet does not wait for that.
    isDue = true
    return change.union(.due)
  }

  /// Determines who speaks. While all voice places are taken, only the peers that have one are speakers, because they take turns.
  /// - Parameters:
  ///   - peers: all of the call.
  ///   - most: the speakers that a call may have: as many as any of its peers has voice slots.
  ///   - places: the voices that a call may have.
  ///   - interval: until the speakers are determined again.
  /// - Returns: whether they changed.
  func update(
    _ peers: ContiguousArray<Peer>, most: Int, places: Int, interval: Duration, now: Instant
  ) -> Bool {
    next = now.advanced(by: interval)
    isDue = false
    let first = current.first
    visits &+= UInt64(loud.count)
    loud.removeAll { peer in
      peer.voice.isLoud = peer.voice.loudness.value(at: now) >= SpeakerSelection.threshold
      return !peer.voice.isLoud
    }
    let hasRoom = voices.peers.count < places
    let loud = loud
    let entries = loud.lazy.map { peer in
      SpeakerSelection.Entry(
        participant: peer.configuration.participant,
        loudness: hasRoom || peer.voice.since != nil ? peer.voice.loudness.value(at: now) : 0,
        isGuest: peer.configuration.isGuest, dominantAt: peer.voice.dominantAt)
    }
    let before = selection.visits
    let isChanged = selection.update(entries, most: max(1, most), now: now) { loud[$0].voice.speech.scores(at: now) }
    visits &+= selection.visits &- before
    guard isChanged else { return false }
    for peer in peers {
      let participant = peer.configuration.participant
      let isSpeaker = current.contains(participant)
      let isNewFirst = participant == current.first && participant != first
      if isNewFirst { peer.voice.dominantAt = now }
      if isSpeaker, !peer.voice.isSpeaker || isNewFirst { peer.voice.spokeAt = now }
      peer.voice.isSpeaker = isSpeaker
    }
    visits &+= UInt64(peers.count)
    return true
  }
}

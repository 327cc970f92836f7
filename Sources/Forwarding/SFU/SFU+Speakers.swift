import MediaModel
import Octets
import RTP

extension SFU {
  /// The level of a microphone that is guessed to speak: enough for a speaker, but lower than speech, so that known speakers come first.
  private static let guessedLevel: UInt8 = 49
  /// After this time without a level, the sizes of packets count.
  private static let levelTime = Duration.seconds(5)

  /// Reads the audio level of a microphone's packet (RFC 6464). It uses the level and not the V bit, because browsers always set
  /// that. An element whose length is not one byte is not a level: an empty one may be at the packet's end.
  func hear(_ packet: borrowing Packet, of peer: Peer, now: Instant) {
    let id = peer.configuration.extensions.audioLevel
    guard id != 0, let element = packet.extensions?.element(id, in: packet.bytes.bytes), element.length == 1 else {
      if let last = peer.levelAt, last.duration(to: now) < Self.levelTime { return }
      return guess(packet, of: peer, isPresumed: true, now: now)
    }
    let level = packet.bytes.bytes[element.offset] & 0x7f
    if level < 127 {
      peer.levelAt = now
      peer.isPresumed = false
    } else if peer.levelAt == nil {
      // Some senders have the extension and never measure anything.
      return guess(packet, of: peer, isPresumed: false, now: now)
    }
    hear(level: level, of: peer, now: now)
  }

  /// Uses the size of a microphone's packet in place of its level.
  /// - Parameter isPresumed: whether it counts as speech if its size says nothing.
  @inline(never)
  private func guess(_ packet: borrowing Packet, of peer: Peer, isPresumed: Bool, now: Instant) {
    let sound = peer.guess.heard(packet.payload.count, isEncrypted: peer.isEncrypted, now: now)
    peer.isPresumed = isPresumed && sound == .presumed
    let isSpeech = isPresumed ? sound != .quiet : sound == .speech && peer.guess.differs
    hear(level: isSpeech ? Self.guessedLevel : 127, isGuess: true, of: peer, now: now)
  }

  func hear(level: UInt8, isGuess: Bool = false, of peer: Peer, now: Instant) {
    peer.loudness.heard(level: level, now: now)
    peer.speech.heard(level: level, isGuess: isGuess, now: now)
    if peer.voiceSince == nil, peer.speech.isSpeaking { admit(peer, now: now) }
    let call = peer.call
    guard peer.loudness.value(at: now) >= SpeakerSelection.threshold else { return }
    if !peer.isLoud {
      peer.isLoud = true
      call.loud.append(peer)
    }
    guard now >= call.nextSpeakers, !call.areSpeakersDue else { return }
    // The next timer pass examines all loud peers; this packet does not wait for that.
    call.areSpeakersDue = true
    schedule(call)
  }

  /// Lets a peer in among the voices if possible. The next timer passes give it slots: at most as many times in 2 s as there are
  /// voices.
  private func admit(_ peer: Peer, now: Instant) {
    let call = peer.call
    counts.pointee.visits &+= UInt64(call.voices.peers.count)
    guard call.voices.admit(peer, most: configuration.voices, now: now), call.ranking.audio.isShort else { return }
    call.isRankingStale = true
    call.allocationDue = now
    schedule(call)
  }

  /// A peer's microphone fell silent for good.
  func forgetVoice(of peer: Peer, now: Instant) {
    peer.loudness = Loudness()
    peer.speech = SpeechActivity()
    peer.call.voices.remove(peer, now: now)
  }

  /// Determines who speaks. A call has at most as many speakers as any of its peers has voice slots. While all voice places are taken, only the peers that have one
  /// are speakers, because they take turns.
  func updateSpeakers(of call: ForwardedCall, now: Instant) {
    call.nextSpeakers = now.advanced(by: configuration.speakersInterval)
    call.areSpeakersDue = false
    let first = call.speakers.current.first
    counts.pointee.visits &+= UInt64(call.loud.count)
    call.loud.removeAll { peer in
      peer.isLoud = peer.loudness.value(at: now) >= SpeakerSelection.threshold
      return !peer.isLoud
    }
    let hasRoom = call.voices.peers.count < configuration.voices
    let entries = call.loud.lazy.map { peer in
      SpeakerSelection.Entry(
        participant: peer.configuration.participant,
        loudness: hasRoom || peer.voiceSince != nil ? peer.loudness.value(at: now) : 0,
        isGuest: peer.configuration.isGuest, dominantAt: peer.dominantAt)
    }
    let before = call.speakers.visits
    let isChanged = call.speakers.update(entries, most: max(1, call.countVoices()), now: now) {
      call.loud[$0].speech.scores(at: now)
    }
    counts.pointee.visits &+= call.speakers.visits &- before
    guard isChanged else { return schedule(call) }
    let speakers = call.speakers.current
    if call.workers.first ?? worker == worker { events.append(.speakers(call.id, speakers)) }
    for peer in call.peers {
      let participant = peer.configuration.participant
      let isSpeaker = speakers.contains(participant)
      let isNewFirst = participant == speakers.first && participant != first
      if isNewFirst { peer.dominantAt = now }
      if isSpeaker, !peer.isSpeaker || isNewFirst { peer.spokeAt = now }
      peer.isSpeaker = isSpeaker
    }
    counts.pointee.visits &+= UInt64(call.peers.count)
    call.isRankingStale = true
    call.allocationDue = now
    schedule(call)
  }
}

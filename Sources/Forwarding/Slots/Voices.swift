import MediaModel

/// The peers whose microphones come before all others in a call with more of them than slots: those who spoke last.
///
/// A newcomer is let in as soon as it speaks, but displaces nobody within a word: while as many speak at once as there are places, the newcomer waits.
struct Voices {
  /// Silence after which one may be displaced, at the earliest so long after it was let in.
  static let silence = Duration.milliseconds(800)
  static let tenure = Duration.seconds(2)

  private(set) var peers: ContiguousArray<Peer> = []

  /// Lets a peer in that speaks. Returns whether there was a place.
  mutating func admit(_ peer: Peer, most: Int, now: Instant) -> Bool {
    if peers.count < most {
      peers.append(peer)
    } else {
      var silent: Int?
      for i in peers.indices where peers[i].voiceHeldUntil <= now {
        if silent.map({ peers[i].speech.lastLoud < peers[$0].speech.lastLoud }) ?? true { silent = i }
      }
      guard let silent else { return false }
      peers[silent].voiceSince = nil
      peers[silent] = peer
    }
    peer.voiceSince = now
    return true
  }

  mutating func remove(_ peer: Peer) {
    guard peer.voiceSince != nil else { return }
    peer.voiceSince = nil
    peers.removeAll { $0 === peer }
  }
}

extension Peer {
  /// Until when no other takes its place among the voices, as far as is known now.
  var voiceHeldUntil: Instant {
    max(speech.lastLoud.advanced(by: Voices.silence), (voiceSince ?? speech.lastLoud).advanced(by: Voices.tenure))
  }
}

import MediaModel

extension SFU {
  /// Tells the peer's quality when its level changed. Called with each report to it.
  func judgeQuality(of peer: Peer, now: Instant) {
    // Payloads, retransmissions apart: what the peer was meant to get.
    for down in peer.downTracks { peer.octetsSent &+= down.takeOctets() }
    tell(peer.quality.judge(roundTrip: peer.roundTrip, octets: peer.octetsSent, now: now), of: peer)
  }

  func tell(_ quality: (level: Int, bitrate: Int)?, of peer: Peer) {
    guard let quality else { return }
    events.append(.quality(peer.id, level: quality.level, bitrate: quality.bitrate))
  }
}

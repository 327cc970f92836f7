package import MediaModel
import Octets
import RTP

/// Calls with peers on several workers. The worker that has a peer decrypts its packets and passes them to each end that wants them. On another worker they are
/// handled like packets of a local peer.
extension SFU {
  /// A message from another end.
  /// - Parameter packet: its bytes are changed in place.
  package func handle(
    _ message: RelayMessage, _ packet: UnsafeMutableRawBufferPointer, from sender: RelayEnd, now: Instant,
    into outbox: Outbox
  ) {
    let before = outbox.state.pointee
    defer { count(outbox, since: before) }
    guard let encoding = peersByID[message.peer]?.encoding(of: message.track, rank: Int(message.rank)) else {
      drop(.unknownPeer)
      // The peer has been removed here, or was never announced: the sender stops.
      if case .packet = message.body { relays.refuse(message, to: sender) }
      return
    }
    let isRemote = encoding.track.peer.home == sender
    switch message.body {
    case .packet(let index, let isRetransmission, let restarts):
      guard isRemote else { return drop(.unexpected) }
      if encoding.restarts != restarts { encoding.restart(as: restarts) }
      receive(packet, index: index, isRetransmission: isRetransmission, of: encoding, now: now, into: outbox)
    case .report(let ntp, let rtp, let at, let clockOffset):
      guard isRemote else { return drop(.unexpected) }
      encoding.reception.pointee.statistics.received(
        (ntp: NTPTimestamp(rawValue: ntp), rtp: rtp, at: Instant(nanoseconds: at)))
      encoding.track.peer.clockOffset = clockOffset
    case .wish(let wish):
      guard encoding.track.peer.home == nil else { return drop(.unexpected) }
      take(wish, for: encoding, from: sender, now: now)
    case .keyFrame:
      guard encoding.track.peer.home == nil else { return drop(.unexpected) }
      output.requestKeyFrame(of: encoding, now: now)
    }
  }

  private func receive(
    _ bytes: UnsafeMutableRawBufferPointer, index: UInt64, isRetransmission: Bool, of encoding: Encoding, now: Instant,
    into outbox: Outbox
  ) {
    guard let header = RTPHeader(parsing: bytes.bytes), let base = bytes.baseAddress,
      let payload = encoding.track.payload(header.payloadType)
    else { return drop(.malformed) }
    encoding.reception.pointee.unwrapper.note(index)
    receive(
      Packet(base: base, length: bytes.count, header: header, index: index), payload.codec, of: encoding,
      isRetransmission: isRetransmission, after: nil, now: now, into: outbox)
  }

  private func take(_ wish: RelayWish, for encoding: Encoding, from end: RelayEnd, now: Instant) {
    let isNew = !encoding.relays.contains { $0.end == end }
    encoding.relay(to: end, wish)
    if isNew, wish != .nothing { relays.sendReport(of: encoding, to: end) }
    updateDemands(of: encoding.track.peer.call, now: now)
  }
}

extension Peer {
  fileprivate func encoding(of track: TrackID, rank: Int) -> Encoding? {
    guard let track = upTracks.first(where: { $0.track == track }), rank < track.encodings.count else { return nil }
    return track.encodings[rank]
  }
}

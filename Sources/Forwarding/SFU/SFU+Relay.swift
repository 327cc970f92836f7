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
      if case .packet = message.body { answer(message, to: sender) }
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
      requestKeyFrame(of: encoding, now: now)
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

  /// Passes a packet to the ends that get this encoding.
  func relayPacket(_ packet: borrowing Packet, of encoding: Encoding, isRetransmission: Bool, now: Instant) {
    // The padding is already cut off.
    if packet.header.paddingLength > 0 {
      RTPHeader.setPadding(false, in: packet.overwritten)
    }
    let body = RelayMessage.Body.packet(
      index: packet.index, isRetransmission: isRetransmission, restarts: encoding.restarts)
    for target in encoding.relays {
      if send(body, about: encoding, packet.bytes, to: target.end) {
        counts.pointee.relayed &+= 1
      } else {
        // The receivers there can continue from the next key frame.
        requestKeyFrame(of: encoding, now: now)
      }
    }
  }

  func relayReport(of encoding: Encoding, to end: RelayEnd) {
    guard let report = encoding.reception.pointee.statistics.lastReport,
      let clockOffset = encoding.track.peer.clockOffset
    else { return }
    _ = send(
      .report(
        ntp: report.ntp.rawValue, rtp: report.rtp, at: report.at.nanoseconds, clockOffset: clockOffset),
      about: encoding, to: end)
  }

  private func take(_ wish: RelayWish, for encoding: Encoding, from end: RelayEnd, now: Instant) {
    let isNew = !encoding.relays.contains { $0.end == end }
    encoding.relay(to: end, wish)
    if isNew, wish != .nothing { relayReport(of: encoding, to: end) }
    updateDemands(of: encoding.track.peer.call, now: now)
  }

  /// Key-frame requests for a remote peer's tracks, and the wishes for them.
  func handleTimeout(of peer: Peer, on home: RelayEnd, now: Instant) {
    for encoding in peer.encodings {
      let isAwaited = encoding.isAwaited && !encoding.track.isSilent
      if encoding.reception.pointee.keyFrames.takeDue(now, isAwaited: isAwaited, roundTrip: peer.roundTrip) {
        _ = send(.keyFrame, about: encoding, to: home)
      }
      peer.schedule(encoding.reception.pointee.keyFrames.deadline)
    }
    if peer.wishReminder.isDue(now) {
      for track in peer.upTracks { tellWishes(for: track, to: home, again: true) }
    }
    peer.schedule(peer.upTracks.isEmpty ? nil : peer.wishReminder.deadline)
  }

  /// Tells the worker that has the track's peer what is wanted of it here: all microphones, because their levels say who speaks, and videos that a slot
  /// shows.
  func tellWishes(for track: UpTrack, to home: RelayEnd, again: Bool = false) {
    let isShown = track.kind == .audio || track.encodings.contains(where: \.isWanted)
    for encoding in track.encodings {
      let wish: RelayWish = !isShown ? .nothing : track.kind == .audio || encoding.isWanted ? .wanted : .packets
      guard again || wish != encoding.toldWish else { continue }
      encoding.toldWish = wish
      _ = send(.wish(wish), about: encoding, to: home)
    }
  }

  func endWishes(for track: UpTrack, to home: RelayEnd) {
    for encoding in track.encodings { _ = send(.wish(.nothing), about: encoding, to: home) }
  }

  private func answer(_ message: RelayMessage, to end: RelayEnd) {
    var answer = message
    answer.body = .wish(.nothing)
    if let relay, !relay.send(answer, UnsafeRawBufferPointer(start: nil, count: 0), to: end) { drop(.relayFull) }
  }

  /// Returns whether there was room.
  private func send(
    _ body: RelayMessage.Body, about encoding: Encoding,
    _ packet: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0), to end: RelayEnd
  ) -> Bool {
    let message = RelayMessage(
      peer: encoding.track.peer.id, track: encoding.track.track, rank: UInt8(encoding.rank), body: body)
    guard let relay, relay.send(message, packet, to: end) else {
      drop(.relayFull)
      return false
    }
    return true
  }
}

extension Peer {
  fileprivate func encoding(of track: TrackID, rank: Int) -> Encoding? {
    guard let track = upTracks.first(where: { $0.track == track }), rank < track.encodings.count else { return nil }
    return track.encodings[rank]
  }
}

package import MediaModel
import Transport

/// Which of its addresses a peer's media goes to, and whether it is sent at all.
extension SFU {
  /// Whether an authentic check of a participant came from the address.
  package func isPath(_ address: SocketAddress) -> Bool { addresses[address] != nil }

  /// Something authentic arrived over the pair.
  func heard(_ pair: CandidatePair, now: Instant, into outbox: Outbox) {
    pair.lastHeard = now
    guard pair.peer.connectionState == .silent else { return }
    if !pair.isProven { startChecks(of: pair, now: now, into: outbox) }
    route(pair.peer, now: now)
  }

  /// Sends the peer's media to the address that it nominated last among those that are proven and have consent, or
  /// nowhere.
  ///
  /// SRTP from a new address proves nothing: a member can send his own packets under a victim's address.
  func route(_ peer: Peer, now: Instant) {
    guard peer.transport.sender != nil, peer.connectionState != .closed else { return }
    guard let best = bestPair(of: peer, now: now) else {
      guard peer.connectionState == .connected, let last = peer.pair else { return }
      // A TCP connection that has ended may be followed by another.
      if last.isGone, hasConsent(last, now: now) { return }
      return lose(peer, lastHeard: last.lastHeard, now: now)
    }
    if peer.pair !== best {
      if peer.pair != nil { peer.transport.downlink?.pointee.pathChanged() }
      peer.pair = best
      peer.transport.path.pointee.destination = best.address
      for gone in peer.pairs where gone.isGone { remove(gone, now: now) }
    }
    if peer.connectionState != .connected { open(peer, now: now) }
  }

  private func bestPair(of peer: Peer, now: Instant) -> CandidatePair? {
    var best: CandidatePair?
    for pair in peer.pairs where pair.isProven && !pair.isGone && hasConsent(pair, now: now) {
      if let known = best, known.nomination >= pair.nomination { continue }
      best = pair
    }
    return best
  }

  private func hasConsent(_ pair: CandidatePair, now: Instant) -> Bool {
    pair.lastHeard.advanced(by: configuration.consentTimeout) > now
  }

  /// After consent has expired somebody else may have the address; a peer that answers checks is checked again.
  func lapse(_ pair: CandidatePair, now: Instant) {
    guard pair.isProven, pair.peer.answersChecks, pair.address.connection == 0, !hasConsent(pair, now: now) else {
      return
    }
    pair.isProven = false
  }

  /// Without consent nothing is sent (RFC 7675 section 5.1): media goes to another address that has it, or stops.
  func checkConsent(of peer: Peer, now: Instant) {
    for pair in peer.pairs where pair.isProven {
      if hasConsent(pair, now: now) {
        peer.schedule(pair.lastHeard.advanced(by: configuration.consentTimeout))
      } else {
        lapse(pair, now: now)
        if pair === peer.pair { route(peer, now: now) }
      }
    }
    if peer.pair == nil { for gone in peer.pairs where gone.isGone { remove(gone, now: now) } }
  }

  /// Nothing can arrive from the address or reach it any longer, because its connection has ended.
  package func forget(_ address: SocketAddress, now: Instant) {
    guard let pair = addresses[address] else { return }
    addresses.remove(address)
    pair.isGone = true
    if pair === pair.peer.pair {
      route(pair.peer, now: now)
    } else {
      remove(pair, now: now)
    }
  }

  /// The address is no longer the peer's.
  func remove(_ pair: CandidatePair, now: Instant) {
    let peer = pair.peer
    if !pair.isGone { addresses.remove(pair.address) }
    peer.pairs.removeAll { $0 === pair }
    if peer.pair === pair {
      route(peer, now: now)
      if peer.pair === pair { lose(peer, lastHeard: pair.lastHeard, now: now) }
    }
  }

  /// Media can flow to the peer, for the first time or again.
  private func open(_ peer: Peer, now: Instant) {
    peer.connectionState = .connected
    peer.transport.path.pointee.isOpen = true
    counts.pointee.connected += 1
    events.append(.connected(peer.id))
    schedule(peer, peer.pair?.lastHeard.advanced(by: configuration.consentTimeout))
    peer.nextReport = now.advanced(by: configuration.reportInterval)
    schedule(peer, peer.nextReport)
    for down in peer.downTracks {
      down.noteAwaiting()
      if let encoding = down.encoding { requestKeyFrame(of: encoding, now: now) }
    }
  }

  /// No address is left that media may be sent to.
  private func lose(_ peer: Peer, lastHeard: Instant, now: Instant) {
    peer.pair = nil
    guard peer.connectionState == .connected else { return }
    close(peer)
    peer.connectionState = .silent
    events.append(.disconnected(peer.id, silence: lastHeard.duration(to: now)))
    tell(peer.quality.gone(now: now), of: peer)
  }

  /// Stops media to the peer until it is opened again.
  func close(_ peer: Peer) {
    guard peer.transport.isOpen else { return }
    peer.transport.path.pointee.isOpen = false
    counts.pointee.connected -= 1
    for down in peer.downTracks { down.pause() }
  }
}

import MediaModel
import Octets
import Transport

/// The peers' addresses: which peer an address belongs to, which of its addresses a peer's media goes to, and whether it is sent at all.
final class PeerPaths {
  let addresses: AddressTable
  let output: SFUOutput
  /// The peers that checks can name, by the fragments of their credentials.
  private(set) var peersByFragment: [String: Peer] = [:]
  let consentTimeout: Duration
  private let reportInterval: Duration
  let responder = STUNResponder(role: .controlled)
  /// For our checks (RFC 8445 section 7.3.1.1); need not be secret.
  var tieBreakers: SplitMix64
  /// Our checks and the answers to those of others: to addresses that may belong to nobody.
  var answers: UnsafeMutablePointer<Outbox.Cursor> { answersBox.pointer }
  private let answersBox = Box(Outbox.Cursor())

  init(_ configuration: SFUConfiguration, seed: UInt64, output: SFUOutput) {
    addresses = AddressTable(seed: seed)
    tieBreakers = SplitMix64(seed: ~seed)
    consentTimeout = configuration.consentTimeout
    reportInterval = configuration.reportInterval
    self.output = output
  }

  /// The peer's pair with this address, which may belong to another peer by now.
  func pair(of peer: Peer, at address: SocketAddress) -> CandidatePair? {
    addresses[address].flatMap { $0.peer === peer ? $0 : nil }
  }

  /// Checks with the peer's credentials are answered from now on.
  func admit(_ peer: Peer) { peersByFragment[peer.configuration.local.fragment] = peer }

  /// Checks with the peer's credentials are refused: it gets others, or is removed.
  func refuse(_ peer: Peer) {
    let fragment = peer.configuration.local.fragment
    if peersByFragment[fragment] === peer { peersByFragment[fragment] = nil }
  }

  /// Stops media to the peer and frees its addresses.
  func removeAll(of peer: Peer) {
    close(peer)
    for pair in peer.pairs where !pair.isGone { addresses.remove(pair.address) }
    peer.pairs = []
    peer.pair = nil
    refuse(peer)
  }

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
    pair.lastHeard.advanced(by: consentTimeout) > now
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
        peer.schedule(pair.lastHeard.advanced(by: consentTimeout))
      } else {
        lapse(pair, now: now)
        if pair === peer.pair { route(peer, now: now) }
      }
    }
    if peer.pair == nil { for gone in peer.pairs where gone.isGone { remove(gone, now: now) } }
  }

  /// Nothing can arrive from the address or reach it any longer, because its connection has ended.
  func forget(_ address: SocketAddress, now: Instant) {
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
    output.counts.pointee.connected += 1
    output.events.append(.connected(peer.id))
    output.schedule(peer, peer.pair?.lastHeard.advanced(by: consentTimeout))
    peer.nextReport = now.advanced(by: reportInterval)
    output.schedule(peer, peer.nextReport)
    for down in peer.downTracks {
      down.noteAwaiting()
      if let encoding = down.encoding { output.requestKeyFrame(of: encoding, now: now) }
    }
  }

  /// No address is left that media may be sent to.
  private func lose(_ peer: Peer, lastHeard: Instant, now: Instant) {
    peer.pair = nil
    guard peer.connectionState == .connected else { return }
    close(peer)
    peer.connectionState = .silent
    output.events.append(.disconnected(peer.id, silence: lastHeard.duration(to: now)))
    output.report(peer.quality.gone(now: now), of: peer)
  }

  /// Stops media to the peer until it is opened again.
  func close(_ peer: Peer) {
    guard peer.transport.isOpen else { return }
    peer.transport.path.pointee.isOpen = false
    output.counts.pointee.connected -= 1
    for down in peer.downTracks { down.pause() }
  }
}

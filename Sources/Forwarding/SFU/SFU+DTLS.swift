import MediaModel
import Transport
import Octets

extension SFU {
  /// The pair's address is one of the peer's, so a stranger cannot race the peer to the handshake (attack A1).
  func handleDTLS(_ datagram: UnsafeRawBufferPointer, on pair: CandidatePair, now: Instant, into outbox: Outbox) {
    let peer = pair.peer
    guard peer.connectionState != .closed else { return drop(.notConnected) }
    if peer.session == nil {
      peer.session = DTLSSession(
        role: .server, certificate: certificate, remoteFingerprint: peer.configuration.fingerprint)
      peer.sessionAddress = pair.address
      peer.isSessionOnOneAddress = true
    }
    guard let session = peer.session else { return }
    if peer.sessionAddress != pair.address { peer.isSessionOnOneAddress = false }
    peer.sessionAddress = pair.address
    let progress = session.handle(datagram, now: now) { send($0, over: pair, now: now, into: outbox) }
    apply(progress, to: peer, over: pair, now: now, into: outbox)
    schedule(peer, peer.session?.nextTimeout)
  }

  func handleSessionTimeout(of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let session = peer.session, let due = session.nextTimeout, due <= now else { return }
    // The address may be another peer's meanwhile.
    let pair = peer.sessionAddress.flatMap { addresses[$0] }.flatMap { $0.peer === peer ? $0 : nil }
    let progress = session.handleTimeout(now: now) {
      if let pair { send($0, over: pair, now: now, into: outbox) }
    }
    apply(progress, to: peer, over: pair, now: now, into: outbox)
  }

  /// Flights are larger than what asks for them, so an address that has proven nothing gets few.
  private func send(
    _ datagram: UnsafeRawBufferPointer, over pair: CandidatePair, now: Instant, into outbox: Outbox
  ) {
    guard pair.isProven || pair.peer.flights.take(now: now.nanoseconds) == nil else { return drop(.unproven) }
    pair.peer.transport.send(datagram, to: pair.address, in: outbox)
  }

  private func apply(
    _ progress: DTLSSession.Progress, to peer: Peer, over pair: CandidatePair?, now: Instant, into outbox: Outbox
  ) {
    switch progress {
    case .none: break
    case .connected(let keys):
      peer.transport.sender = SRTPSender(profile: keys.profile, master: keys.outbound)
      peer.inbound = SRTPReceiver(profile: keys.profile, master: keys.inbound)
      // Until a path is proven.
      peer.connectionState = .silent
      guard let pair else { return }
      pair.lastHeard = now
      if pair.isProven || peer.isSessionOnOneAddress {
        // The client's Finished covers our random bytes, and they went to this address alone.
        prove(pair, now: now)
      } else {
        startChecks(of: pair, now: now, into: outbox)
        route(peer, now: now)
      }
    case .failed where peer.connectionState == .waiting:
      // Perhaps a forged datagram spoiled it: the peer may begin again.
      drop(.handshakeFailed)
      peer.session = nil
    case .failed, .closed:
      close(peer)
      if peer.connectionState != .waiting { events.append(.disconnected(peer.id, silence: .zero)) }
      peer.connectionState = .closed
      peer.inbound = nil
      peer.transport.sender = nil
    }
  }
}

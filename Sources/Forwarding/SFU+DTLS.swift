import MediaModel
import Transport

extension SFU {
  /// `source` is a validated address of the peer, so a stranger cannot race the peer to the handshake (attack A1).
  func handleDTLS(
    _ datagram: UnsafeRawBufferPointer, of peer: Peer, from source: SocketAddress, now: Instant,
    into outbox: Outbox
  ) {
    guard peer.presence != .closed else { return drop(.notConnected) }
    let session =
      peer.session
      ?? DTLSSession(
        role: .server, certificate: certificate, remoteFingerprint: peer.configuration.fingerprint)
    peer.session = session
    peer.sessionAddress = source
    let outcome = session.handle(datagram, now: now) { peer.link.send($0, to: source, in: outbox) }
    apply(outcome, to: peer, now: now)
    schedule(peer, peer.session?.nextTimeout)
  }

  func handleSessionTimeout(of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let session = peer.session, let address = peer.sessionAddress, let due = session.nextTimeout, due <= now
    else { return }
    apply(session.handleTimeout(now: now) { peer.link.send($0, to: address, in: outbox) }, to: peer, now: now)
  }

  private func apply(_ outcome: DTLSSession.Outcome, to peer: Peer, now: Instant) {
    switch outcome {
    case .none: break
    case .connected(let keys):
      peer.link.sender = SRTPSender(profile: keys.profile, master: keys.outbound)
      peer.inbound = SRTPReceiver(profile: keys.profile, master: keys.inbound)
      peer.lastHeard = now
      open(peer, now: now)
    case .failed where peer.presence == .waiting:
      // Perhaps a forged datagram spoiled it: the peer may begin again.
      drop(.handshakeFailed)
      peer.session = nil
    case .failed, .closed:
      close(peer)
      if peer.presence != .waiting { events.append(.disconnected(peer.id, silence: .zero)) }
      peer.presence = .closed
      peer.inbound = nil
      peer.link.sender = nil
    }
  }
}

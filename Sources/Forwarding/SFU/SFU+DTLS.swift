package import MediaModel
import Octets
import Transport

extension SFU {
  /// The pair's address is one of the peer's, so a stranger cannot start a handshake before the peer does.
  func handleDTLS(_ datagram: UnsafeRawBufferPointer, on pair: CandidatePair, now: Instant, into outbox: Outbox) {
    let peer = pair.peer
    guard peer.connectionState != .closed else { return drop(.notConnected) }
    if peer.association == nil {
      let session = DTLSSession(
        role: .server, certificate: certificate, remoteFingerprint: peer.configuration.fingerprint)
      peer.association = Association(session, at: pair.address)
    }
    guard peer.association?.append(datagram, from: pair.address, of: peer.id, now: now) == true else {
      return drop(.handshakeBusy)
    }
    startStep(of: peer, now: now, into: outbox)
  }

  /// Only the arithmetic of a handshake takes long; anything after it is done immediately.
  private func startStep(of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let (step, isHandshake) = peer.association?.start() else { return }
    if isHandshake, let handshakes { return handshakes.run(step) }
    step.run()
    finish(step, now: now, into: outbox)
  }

  /// Takes back a step that `HandshakeRunner` has carried out.
  package func handle(_ step: HandshakeStep, now: Instant, into outbox: Outbox) {
    let before = outbox.state.pointee
    defer { count(outbox, since: before) }
    finish(step, now: now, into: outbox)
  }

  private func finish(_ step: HandshakeStep, now: Instant, into outbox: Outbox) {
    // The peer may have been removed, or have another association.
    guard let peer = peersByID[step.peer], peer.association?.finish(step) == true else { return }
    let pair = paths.pair(of: peer, at: step.address)
    if let pair {
      for answer in step.answers {
        answer.withUnsafeBytes { send($0, over: pair, now: now, into: outbox) }
      }
    }
    apply(step.progress, to: peer, over: pair, now: now, into: outbox)
    output.schedule(peer, peer.association?.timeout)
    startStep(of: peer, now: now, into: outbox)
  }

  func handleSessionTimeout(of peer: Peer, now: Instant, into outbox: Outbox) {
    guard let address = peer.association?.address else { return }
    let pair = paths.pair(of: peer, at: address)
    let progress = peer.association?.handleTimeout(now: now) {
      if let pair { send($0, over: pair, now: now, into: outbox) }
    }
    if let progress { apply(progress, to: peer, over: pair, now: now, into: outbox) }
  }

  /// Flights are larger than what requests them, so an unproven address gets few.
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
      if pair.isProven || peer.association?.isOnOneAddress == true {
        // The client's Finished covers our random bytes, and they went only to this address.
        paths.prove(pair, now: now)
      } else {
        paths.startChecks(of: pair, now: now, into: outbox)
        paths.route(peer, now: now)
      }
    case .failed where peer.connectionState == .waiting:
      // A forged datagram may have broken it: the peer may begin again.
      drop(.handshakeFailed)
      for _ in 0..<(peer.association?.waiting ?? 0) { drop(.notConnected) }
      peer.association = nil
    case .failed, .closed:
      paths.close(peer)
      if peer.connectionState != .waiting { output.events.append(.disconnected(peer.id, silence: .zero)) }
      peer.connectionState = .closed
      peer.inbound = nil
      peer.transport.sender = nil
    }
  }
}

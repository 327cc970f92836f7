import LinuxIO
import MediaModel
import Transport

/// ICE and DTLS.
extension MediaPeer {
  private static let checkInterval = Duration.milliseconds(50)
  private static let triesPerCandidate = 3
  /// The interval of consent checks (RFC 7675 section 5.1).
  private static let consentInterval = Duration.seconds(4)

  /// Sends the connectivity check that is due: to one candidate after the other until one answers, then for consent.
  func check(_ now: Instant) {
    guard nextCheck <= now else { return }
    let target: SocketAddress
    switch path {
    case .found(let address):
      target = address
      nextCheck = now.advanced(by: Self.consentInterval)
    case .checking(let candidate, let tries):
      let candidates = setup.remote.candidates.filter { socket.hasIPv6 || $0.isIPv4 }
      guard !candidates.isEmpty else { return setup.progress.failed("no candidate of the server can be reached") }
      target = candidates[candidate % candidates.count]
      path =
        tries + 1 < Self.triesPerCandidate
        ? .checking(candidate: candidate, tries: tries + 1) : .checking(candidate: candidate + 1, tries: 0)
      nextCheck = now.advanced(by: Self.checkInterval)
    }
    guard let room = output.room else { return }
    let length = checker.makeCheck(of: target, transaction: ConnectivityChecker.randomTransaction(), into: room)
    output.append(length)
    transmit(to: target)
  }

  func handleSTUN(_ datagram: UnsafeRawBufferPointer, from source: SocketAddress, now: Instant) {
    if datagram[0] == 0 { return answer(datagram, from: source) }
    guard case .succeeded = checker.handle(datagram, from: source) else { return }
    guard case .checking = path else { return }
    path = .found(source)
    nextCheck = now.advanced(by: Self.consentInterval)
    follow(dtls.start(now: now, send: enqueue), now: now)
  }

  /// The server asks whether media reaches this address (protocol section 6).
  private func answer(_ check: UnsafeRawBufferPointer, from source: SocketAddress) {
    guard let room = output.room, room.count >= STUNResponder.replyCapacity else { return }
    let response = responder.respond(to: check, from: source, into: room) {
      $0 == setup.local.credentials.fragment ? setup.local.credentials.password : nil
    }
    guard case .accepted(_, let length, _) = response else { return }
    output.append(length)
    transmit(to: source)
  }

  func handleDTLS(_ datagram: UnsafeRawBufferPointer, now: Instant) {
    follow(dtls.handle(datagram, now: now, send: enqueue), now: now)
  }

  func keepHandshakeGoing(_ now: Instant) {
    guard let due = dtls.nextTimeout, due <= now else { return }
    follow(dtls.handleTimeout(now: now, send: enqueue), now: now)
  }

  private func follow(_ progress: DTLSSession.Progress, now: Instant) {
    switch progress {
    case .none: break
    case .connected(let keys):
      outbound = SRTPSender(profile: keys.profile, master: keys.outbound)
      inbound = SRTPReceiver(profile: keys.profile, master: keys.inbound)
      setup.progress.connected(at: now)
    case .failed(let failure): setup.progress.failed("DTLS failed: \(failure)")
    case .closed: setup.progress.failed("the server closed the connection")
    }
  }

  private func enqueue(_ datagram: UnsafeRawBufferPointer) {
    guard let room = output.room, datagram.count <= room.count else { return }
    room.copyMemory(from: datagram)
    output.append(datagram.count)
  }
}

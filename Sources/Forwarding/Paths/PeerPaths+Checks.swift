import MediaModel
import Transport
import Octets

/// Connectivity checks, the peers' and ours.
extension PeerPaths {
  /// An unproven address that was heard within this time is not taken by another peer; a proven one keeps its owner until its consent
  /// is over.
  private static let addressHold = Duration.seconds(5)
  /// Between the checks of a round: 250 ms, doubled each time.
  private static let checkInterval = Duration.milliseconds(250)
  private static let checksPerRound = 4
  /// After a round without an answer the peer's next authentic check begins another, but no sooner than this.
  private static let roundPause = Duration.seconds(2)
  /// Type preference of a peer-reflexive candidate (RFC 8445 sections 5.1.2.1 and 7.1.1).
  private static let checkPriority: UInt32 = 110 << 24 | 0xffff << 8 | 255

  func handleSTUN(
    _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, now: Instant, into outbox: Outbox
  ) {
    // The class bits of a response (RFC 8489 section 5).
    if datagram.bytes[0] == 1 { return handleAnswer(datagram, from: source, now: now) }
    guard let reply = outbox.reserve(STUNResponder.replyCapacity, &answers.pointee) else {
      return output.drop(.outboxFull)
    }
    var asked: Peer?
    let response = responder.respond(to: datagram, from: source, into: reply) { fragment in
      asked = peersByFragment[fragment]
      return asked?.configuration.local.password
    }
    switch response {
    case .accepted(_, let length, let nominated):
      guard let peer = asked, peer.connectionState != .closed else { return output.drop(.unknownPeer) }
      guard let pair = pair(of: peer, with: source, now: now) else { return output.drop(.addressTaken) }
      outbox.commit(length, &answers.pointee, to: source, isUrgent: true)
      accept(pair, isNominated: nominated, now: now, into: outbox)
    case .refused(let length):
      output.drop(.refused)
      outbox.commit(length, &answers.pointee, to: source, isUrgent: true)
    case .dropped(let reason): output.drop(reason)
    }
  }

  /// An authentic check arrived: the address is the peer's, and nominated if the peer says so. One of our checks must prove that media may go
  /// there.
  private func accept(_ pair: CandidatePair, isNominated: Bool, now: Instant, into outbox: Outbox) {
    let peer = pair.peer
    lapse(pair, now: now)
    pair.lastHeard = now
    if isNominated {
      peer.nominations += 1
      pair.nomination = peer.nominations
    }
    // A peer without a path needs any; before the handshake it may still be trying many.
    let isWanted = pair.nomination > 0 || peer.pairs.count == 1 || peer.connectionState == .silent
    if !pair.isProven, isWanted { startChecks(of: pair, now: now, into: outbox) }
    route(peer, now: now)
  }

  // MARK: our checks

  /// Begins a round of checks unless one is under way or has just ended, so a member who spoofs requests cannot make us send much more to a third party than the
  /// requests themselves.
  func startChecks(of pair: CandidatePair, now: Instant, into outbox: Outbox) {
    guard pair.nextCheck == nil else { return }
    if let last = pair.lastCheck, last.duration(to: now) < Self.roundPause { return }
    pair.checks = 0
    pair.nextCheck = now
    sendCheck(of: pair, now: now, into: outbox)
  }

  /// Sends the checks that are due.
  func sendChecks(of peer: Peer, now: Instant, into outbox: Outbox) {
    for pair in peer.pairs {
      guard let due = pair.nextCheck else { continue }
      if due <= now { sendCheck(of: pair, now: now, into: outbox) }
      peer.schedule(pair.nextCheck)
    }
  }

  private func sendCheck(of pair: CandidatePair, now: Instant, into outbox: Outbox) {
    let peer = pair.peer
    pair.nextCheck = nil
    guard pair.checks < Self.checksPerRound, !pair.isProven, peer.connectionState != .closed else { return }
    if peer.checker == nil {
      peer.checker = ConnectivityChecker(
        role: .controlled, local: peer.configuration.local, remote: peer.configuration.remote,
        tieBreaker: tieBreakers.next())
    }
    guard let checker = peer.checker else { return }
    let interval = Self.checkInterval * (1 << pair.checks)
    pair.checks += 1
    pair.lastCheck = now
    pair.nextCheck = now.advanced(by: interval)
    output.schedule(peer, pair.nextCheck)
    guard peer.checks.take(now: now.nanoseconds) == nil else { return output.drop(.unproven) }
    guard let room = outbox.reserve(ConnectivityChecker.checkCapacity, &answers.pointee) else {
      return output.drop(.outboxFull)
    }
    let length = checker.makeCheck(
      of: pair.address, transaction: ConnectivityChecker.randomTransaction(), priority: Self.checkPriority, into: room)
    outbox.commit(length, &answers.pointee, to: pair.address, isUrgent: true)
    output.counts.pointee.checksSent &+= 1
  }

  private func handleAnswer(_ datagram: UnsafeRawBufferPointer, from source: SocketAddress, now: Instant) {
    guard let pair = addresses[source], let checker = pair.peer.checker else { return output.drop(.unexpected) }
    switch checker.handle(datagram, from: source) {
    case .succeeded:
      pair.peer.answersChecks = true
      pair.lastHeard = now
      prove(pair, now: now)
    case .refused: output.drop(.refused)
    case .dropped(let reason): output.drop(reason)
    }
  }

  /// The address is proven to receive packets.
  func prove(_ pair: CandidatePair, now: Instant) {
    let peer = pair.peer
    pair.isProven = true
    pair.nextCheck = nil
    pair.lastCheck = nil
    // Its 13 KB are needed only for outstanding checks.
    if !peer.pairs.contains(where: { $0.nextCheck != nil }) { peer.checker = nil }
    route(peer, now: now)
  }

  // MARK: addresses

  /// The source of an authentic check as an address of the peer; nil while it belongs to another.
  private func pair(of peer: Peer, with address: SocketAddress, now: Instant) -> CandidatePair? {
    if let known = addresses[address] {
      if known.peer === peer { return known }
      let hold = known.isProven ? consentTimeout : Self.addressHold
      guard known.lastHeard.duration(to: now) >= hold || known.peer.connectionState == .closed else { return nil }
      remove(known, now: now)
    }
    if peer.pairs.count == Peer.maximumPairs,
      let old = peer.pairs.first(where: { !$0.isProven && $0 !== peer.pair })
        ?? peer.pairs.first(where: { $0 !== peer.pair })
    {
      remove(old, now: now)
    }
    let pair = CandidatePair(peer, address, now: now)
    addresses.insert(pair)
    peer.pairs.append(pair)
    return pair
  }
}

package import MediaModel
import Transport

extension SFU {
  /// While a peer was heard this lately, no other peer takes one of its addresses: ICE-lite cannot tell a spoofed source from a true one.
  private static let addressHold = Duration.seconds(5)

  func handleSTUN(
    _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, now: Instant, into outbox: Outbox
  ) {
    guard let reply = outbox.reserve(STUNResponder.replyCapacity, &answers.pointee) else { return drop(.outboxFull) }
    let outcome = responder.respond(to: datagram, from: source, into: reply) { fragment in
      peersByFragment[fragment]?.configuration.local.password
    }
    switch outcome {
    case .accepted(let fragment, let length, let nominated):
      guard let peer = peersByFragment[fragment], peer.presence != .closed else { return drop(.unknownPeer) }
      guard validate(source, of: peer, nominated: nominated, now: now) else { return drop(.addressTaken) }
      outbox.commit(length, &answers.pointee, to: source, isUrgent: true)
      heard(peer, now: now)
    case .refused(let length):
      drop(.refused)
      outbox.commit(length, &answers.pointee, to: source, isUrgent: true)
    case .dropped(let reason): drop(reason)
    }
  }

  /// Whether a participant has proven that this address is its own.
  package func isPath(_ address: SocketAddress) -> Bool { addresses[address] != nil }

  /// Nothing can come from the address or reach it any longer: its connection ended. Media goes to the newest address that is left.
  package func forget(_ address: SocketAddress) {
    guard let peer = addresses[address] else { return }
    addresses.remove(address)
    peer.addresses.removeAll { $0 == address }
    if let newest = peer.addresses.last, peer.link.path.pointee.destination == address {
      peer.link.path.pointee.destination = newest
    }
  }

  /// Something authentic came from the peer.
  func heard(_ peer: Peer, now: Instant) {
    peer.lastHeard = now
    if peer.presence == .silent { open(peer, now: now) }
  }

  /// Media can flow to the peer, for the first time or again.
  func open(_ peer: Peer, now: Instant) {
    peer.presence = .connected
    peer.link.path.pointee.isOpen = true
    counts.pointee.connected += 1
    events.append(.connected(peer.id))
    schedule(peer, peer.lastHeard.advanced(by: configuration.consentTimeout))
    peer.nextReport = now.advanced(by: configuration.reportInterval)
    schedule(peer, peer.nextReport)
    for down in peer.downTracks {
      if let source = down.source { requestKeyFrame(of: source, now: now, isNewSource: true) }
    }
  }

  /// No media to the peer until it is opened again.
  func close(_ peer: Peer) {
    guard peer.link.isOpen else { return }
    peer.link.path.pointee.isOpen = false
    counts.pointee.connected -= 1
    for down in peer.downTracks { down.pause() }
  }

  /// Takes the source of an authentic check as an address of the peer; the peer's media goes to the newest that it nominated.
  private func validate(_ address: SocketAddress, of peer: Peer, nominated: Bool, now: Instant) -> Bool {
    let owner = addresses[address]
    if let owner, owner !== peer {
      guard owner.lastHeard.duration(to: now) >= Self.addressHold || owner.presence == .closed else { return false }
      owner.addresses.removeAll { $0 == address }
    }
    if owner !== peer {
      if peer.addresses.count == Peer.maximumAddresses,
        let old = peer.addresses.firstIndex(where: { $0 != peer.link.path.pointee.destination })
      {
        addresses.remove(peer.addresses.remove(at: old))
      }
      addresses.insert(peer, at: address)
      peer.addresses.append(address)
    }
    if nominated || peer.addresses.count == 1 { peer.link.path.pointee.destination = address }
    return true
  }
}

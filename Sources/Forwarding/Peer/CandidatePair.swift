import MediaModel

/// A remote address of a peer together with our port (RFC 8445 section 2.2), with its own consent (RFC 7675) and proof.
final class CandidatePair {
  /// The peer removes its pairs before it is freed.
  unowned(unsafe) let peer: Peer
  let address: SocketAddress
  /// When something authentic last came from this exact address.
  var lastHeard: Instant
  /// The address is proven to receive packets: it answered a check of ours, the whole DTLS handshake went over it, or it is a TCP connection.
  var isProven: Bool
  /// Rises with each nomination by the peer; 0: never nominated.
  var nomination: UInt64 = 0
  /// When our next check goes to it, and how many of this round were sent.
  var nextCheck: Instant?
  var checks = 0
  var lastCheck: Instant?
  /// Its TCP connection has ended.
  var isGone = false

  init(_ peer: Peer, _ address: SocketAddress, now: Instant) {
    self.peer = peer
    self.address = address
    lastHeard = now
    // The TCP handshake went both ways.
    isProven = address.connection != 0
  }
}

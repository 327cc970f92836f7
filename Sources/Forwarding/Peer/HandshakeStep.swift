import MediaModel
import Transport

/// One datagram of a peer's DTLS association, and what the association made of it. The arithmetic of a handshake takes as long as hundreds of packets, so it need
/// not be done on the thread of the packets.
///
/// Sendable unchecked: from `HandshakeRunner.run` until `SFU.handle(_:now:into:)` the step and its association belong to the runner alone.
package final class HandshakeStep: @unchecked Sendable {
  let peer: PeerID
  let session: DTLSSession
  /// Where the datagram came from: the answers go there.
  let address: SocketAddress
  let arrival: Instant
  private let datagram: [UInt8]
  private(set) var answers: [[UInt8]] = []
  private(set) var progress = DTLSSession.Progress.none
  /// When the association wants to be called next.
  private(set) var timeout: Instant?

  init(
    _ datagram: UnsafeRawBufferPointer, from address: SocketAddress, arrival: Instant, peer: PeerID,
    session: DTLSSession
  ) {
    self.datagram = Array(datagram)
    self.address = address
    self.arrival = arrival
    self.peer = peer
    self.session = session
  }

  /// Carries the step out, once; any thread.
  package func run() {
    progress = datagram.withUnsafeBytes { datagram in
      session.handle(datagram, now: arrival) { answers.append(Array($0)) }
    }
    timeout = session.nextTimeout
  }
}

/// Carries out steps of handshakes away from the thread of the packets.
package protocol HandshakeRunner: AnyObject {
  /// Starts a step. When it has run, it is given to `SFU.handle(_:now:into:)`.
  func run(_ step: HandshakeStep)
}

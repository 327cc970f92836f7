import MediaModel
import Transport

/// One datagram of a peer's DTLS association, and what the association answers. The arithmetic of a handshake takes as long as hundreds of packets, so it need
/// not run on the packet thread.
///
/// Sendable unchecked: from `HandshakeRunner.run` until `SFU.handle(_:now:into:)` the step and its association belong only to the runner.
package final class HandshakeStep: @unchecked Sendable {
  let peer: PeerID
  let session: DTLSSession
  /// Where the datagram came from. The answers go there.
  let address: SocketAddress
  let arrival: Instant
  private let datagram: [UInt8]
  private(set) var answers: [[UInt8]] = []
  private(set) var progress = DTLSSession.Progress.none
  /// When the association must be called next.
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

  /// Runs the step, once, on any thread.
  package func run() {
    progress = datagram.withUnsafeBytes { datagram in
      session.handle(datagram, now: arrival) { answers.append(Array($0)) }
    }
    timeout = session.nextTimeout
  }
}

/// Runs the steps of handshakes outside the packet thread.
package protocol HandshakeRunner: AnyObject {
  /// Starts a step. When it has run, it is passed to `SFU.handle(_:now:into:)`.
  func run(_ step: HandshakeStep)
}

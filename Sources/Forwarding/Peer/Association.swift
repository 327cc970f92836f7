import MediaModel
import Transport

/// A peer's DTLS association. Steps are run one after the other, possibly on another thread; datagrams that arrive meanwhile
/// wait.
struct Association {
  /// Datagrams that may wait. A client's flight has up to eight.
  static let maximumWaiting = 16

  /// Must not be touched while a step is running.
  private let session: DTLSSession
  /// Where the last datagram came from. Retransmissions go there.
  private(set) var address: SocketAddress
  /// All datagrams so far came from this address, so ours went only to it.
  private(set) var isOnOneAddress = true
  /// The first is running, the others wait.
  private var steps: [HandshakeStep] = []
  /// The session is with the runner of the first step.
  private var isAway = false
  /// When `handleTimeout` must be called; nil while a step is running.
  private(set) var timeout: Instant?

  init(_ session: DTLSSession, at address: SocketAddress) {
    self.session = session
    self.address = address
  }

  /// Takes a datagram from the peer; false when too many wait.
  mutating func append(
    _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, of peer: PeerID, now: Instant
  ) -> Bool {
    guard steps.count <= Self.maximumWaiting else { return false }
    if address != source { isOnOneAddress = false }
    address = source
    steps.append(HandshakeStep(datagram, from: source, arrival: now, peer: peer, session: session))
    return true
  }

  /// The next step to run and whether it can take long; nil if none waits or one is running.
  mutating func start() -> (step: HandshakeStep, isHandshake: Bool)? {
    guard !isAway, let step = steps.first else { return nil }
    isAway = true
    timeout = nil
    return (step, session.isHandshaking)
  }

  /// Takes back a step that was run; false if it does not belong to this association.
  mutating func finish(_ step: HandshakeStep) -> Bool {
    guard isAway, steps.first === step else { return false }
    steps.removeFirst()
    isAway = false
    timeout = step.timeout
    return true
  }

  /// Retransmits the last flight if that is due, or gives up. Nothing is due while a step is running.
  mutating func handleTimeout(now: Instant, send: (UnsafeRawBufferPointer) -> Void) -> DTLSSession.Progress {
    guard let due = timeout, due <= now else { return .none }
    defer { timeout = session.nextTimeout }
    return session.handleTimeout(now: now, send: send)
  }

  /// Sends close_notify, if the handshake is done.
  func close(send: (UnsafeRawBufferPointer) -> Void) {
    if !isAway { session.close(send: send) }
  }

  /// Datagrams that have not been handled.
  var waiting: Int { isAway ? steps.count - 1 : steps.count }
}

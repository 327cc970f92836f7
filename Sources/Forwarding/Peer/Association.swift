import MediaModel
import Transport

/// A peer's DTLS association. One step after the other is carried out, perhaps elsewhere; datagrams that come meanwhile wait.
struct Association {
  /// Datagrams that wait. A flight of a client has up to eight.
  static let maximumWaiting = 16

  /// Not to be touched while a step is being carried out.
  private let session: DTLSSession
  /// Where the last datagram came from: repetitions go there.
  private(set) var address: SocketAddress
  /// All datagrams so far came from this address, so ours went only to it.
  private(set) var isOnOneAddress = true
  /// The first is being carried out, the others wait.
  private var steps: [HandshakeStep] = []
  /// The session is with whoever carries out the first step.
  private var isAway = false
  /// When `handleTimeout` wants to be called; nil while a step is being carried out.
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

  /// The step to carry out now and whether it can take long; nil when none waits or one is being carried out.
  mutating func start() -> (step: HandshakeStep, isHandshake: Bool)? {
    guard !isAway, let step = steps.first else { return nil }
    isAway = true
    timeout = nil
    return (step, session.isHandshaking)
  }

  /// Takes a step back that was carried out; false when it is not of this association.
  mutating func finish(_ step: HandshakeStep) -> Bool {
    guard isAway, steps.first === step else { return false }
    steps.removeFirst()
    isAway = false
    timeout = step.timeout
    return true
  }

  /// Sends the last flight again if that is due, or gives up. Nothing is due while a step is being carried out.
  mutating func handleTimeout(now: Instant, send: (UnsafeRawBufferPointer) -> Void) -> DTLSSession.Progress {
    guard let due = timeout, due <= now else { return .none }
    defer { timeout = session.nextTimeout }
    return session.handleTimeout(now: now, send: send)
  }

  /// Says close_notify, if the handshake is done.
  func close(send: (UnsafeRawBufferPointer) -> Void) {
    if !isAway { session.close(send: send) }
  }

  /// Datagrams that have not been handled.
  var waiting: Int { isAway ? steps.count - 1 : steps.count }
}

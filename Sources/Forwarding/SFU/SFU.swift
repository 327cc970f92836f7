package import MediaModel
import Octets
import RTP
package import Transport

/// One worker's selective forwarding unit: every peer and call that was placed on the worker.
///
/// A state machine without socket or clock. `handle…` takes a datagram and the time. Afterwards the outbox contains the packets to send, and `events` those
/// for the control plane. Not Sendable: it lives on its worker's thread, with one outbox.
package final class SFU {
  /// A longer datagram is not media of ours: IPv4 and UDP in an Ethernet frame leave 1,472 bytes.
  package static let maximumDatagram = 1500

  /// Events in the order in which they happened, for the worker to take after each call.
  package var events: [MediaEvent] {
    get { output.events }
    _modify { yield &output.events }
  }

  /// When `handleTimeout` must be called; nil if nothing waits. Read it again after each call.
  package var nextTimeout: Instant? {
    guard let history = histories.deadline, let other = output.nextTimeout else {
      return histories.deadline ?? output.nextTimeout
    }
    return min(history, other)
  }

  let output = SFUOutput()
  /// That of `output`.
  let counts: UnsafeMutablePointer<SFUCounters>
  let paths: PeerPaths
  let slots: SlotFiller
  let pins: PinFiller
  let feedback: Feedback
  let relays: RelaySender
  /// Runs the arithmetic of handshakes; nil if this SFU does so itself.
  let handshakes: (any HandshakeRunner)?
  let configuration: SFUConfiguration
  let certificate: DTLSCertificate
  /// That of `configuration`, in nanoseconds.
  let longestAge: UInt64
  var random: SplitMix64
  let histories: HistoryBudget
  var peersByID: [PeerID: Peer] = [:]
  var peers: ContiguousArray<Peer> = []
  var calls: [CallID: ForwardedCall] = [:]
  /// Calls that have begun here, to number them.
  var callsBegun: UInt64 = 0
  /// The share of the video of all calls for which there is time; below 1 while the worker cannot keep up.
  var videoShare = 1.0
  /// When it is divided among the calls again.
  var nextShares = Instant(nanoseconds: 0)

  /// - Parameters:
  ///   - seed: determines the random choices that need not be secret: all except the transactions of checks.
  ///   - address: the one by which other workers know this one.
  ///   - relay: the way to them, for calls with peers on several workers.
  ///   - handshakes: runs the arithmetic of handshakes elsewhere; nil: it runs immediately.
  package init(
    configuration: SFUConfiguration, certificate: DTLSCertificate, seed: UInt64,
    address: WorkerAddress = WorkerAddress(node: Incarnation(0), worker: 0), relay: (any Relay)? = nil,
    handshakes: (any HandshakeRunner)? = nil
  ) {
    self.handshakes = handshakes
    self.configuration = configuration
    self.certificate = certificate
    longestAge = UInt64(max(0, configuration.longestAge.nanoseconds))
    random = SplitMix64(seed: seed)
    histories = HistoryBudget(limit: configuration.historyBudget)
    counts = output.counts
    paths = PeerPaths(configuration, seed: random.next(), output: output)
    pins = PinFiller(output: output)
    slots = SlotFiller(configuration, of: address, histories: histories, output: output, pins: pins)
    relays = RelaySender(relay, output: output)
    feedback = Feedback(relays: relays, output: output)
  }

  deinit {
    // Slots and their sources retain each other.
    for down in peers.flatMap(\.downTracks) { down.setSource(nil, now: Instant(nanoseconds: 0)) }
  }

  /// A snapshot of the counters.
  package var counters: SFUCounters {
    var counters = counts.pointee
    counters.peers = peers.count
    counters.historyBytes = histories.used
    counters.historiesHalved = histories.taken
    counters.visits &+= output.visits
    return counters
  }

  /// A datagram from the network. Its bytes are changed in place; the SFU keeps no pointer to them.
  /// - Parameter age: how long it was in the kernel's buffer, in nanoseconds. Old media is not used. Old checks and DTLS are used: they prove that
  ///   the peer was there, and after a pause of the machine they keep its path until newer ones arrive.
  package func handle(
    _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, age: UInt64 = 0, now: Instant,
    into outbox: Outbox
  ) {
    counts.pointee.datagramsIn &+= 1
    counts.pointee.bytesIn &+= UInt64(datagram.count)
    let before = outbox.state.pointee
    defer { count(outbox, since: before) }
    guard datagram.count <= Self.maximumDatagram else { return drop(.tooLong) }
    // RTP first, because it's by far the most common.
    switch DatagramKind.classify(datagram.bytes) {
    case .rtp:
      guard let pair = paths.addresses[source] else { return drop(.unknownPeer) }
      handleRTP(datagram, age: age, on: pair, now: now, into: outbox)
    case .rtcp:
      guard let pair = paths.addresses[source] else { return drop(.unknownPeer) }
      handleRTCP(datagram, age: age, on: pair, now: now, into: outbox)
    case .stun:
      paths.handleSTUN(UnsafeRawBufferPointer(datagram), from: source, now: now, into: outbox)
    case .dtls:
      guard let pair = paths.addresses[source] else { return drop(.unknownPeer) }
      handleDTLS(UnsafeRawBufferPointer(datagram), on: pair, now: now, into: outbox)
    case .unknown:
      drop(.unknownKind)
    }
  }

  /// Carries out commands of the control plane, in order. The slots of the calls concerned are filled once, at the end, so a call of a thousand that ends does not
  /// cause a thousand allocations.
  /// - Parameter isSpent: whether packets have waited long enough. It is asked after each command and each call; timers then fill the remaining slots.
  /// - Returns: how many commands were carried out, at least one if there are any. The caller passes the others again.
  @discardableResult
  package func handle(
    _ commands: some Sequence<MediaCommand>, now: Instant, into outbox: Outbox, isSpent: () -> Bool = { false }
  ) -> Int {
    let before = outbox.state.pointee
    defer { count(outbox, since: before) }
    var handled = 0
    var isOver = false
    for command in commands {
      switch command {
      case .configure(let configuration, let request):
        configure(configuration, request: request, now: now, into: outbox)
      case .remove(let id): remove(id, now: now, into: outbox)
      case .mute(let id, let track, let isMuted): mute(id, track, isMuted, now: now)
      case .removeTrack(let id, let track): removeTrack(id, track, now: now)
      case .hold(let id, let isHeld): hold(id, isHeld, now: now)
      case .receive(let id, let wishes): receive(id, wishes, now: now)
      case .pin(let id, let new): pin(id, new, now: now)
      case .mirror(let configuration, let worker): mirror(configuration, home: .worker(worker), now: now)
      case .share(let id, let workers): calls[id]?.workers = workers
      }
      handled += 1
      isOver = isSpent()
      if isOver { break }
    }
    for call in slots.takeChanged() where !call.isEmpty {
      if isOver {
        slots.fillAfterBurst(call, now: now)
      } else {
        allocateSlots(in: call, now: now, into: outbox)
        isOver = isSpent()
      }
    }
    return handled
  }

  package func handle(_ command: MediaCommand, now: Instant, into outbox: Outbox) {
    handle(CollectionOfOne(command), now: now, into: outbox)
  }

  func drop(_ reason: DropReason) { counts.pointee.drop(reason) }

  /// Datagrams that were dropped because their senders exceeded their limits.
  package var flooded: UInt64 { counts.pointee.drops(.tooMuch) }

  /// Whether an authentic check of a participant came from the address.
  package func isPath(_ address: SocketAddress) -> Bool { paths.addresses[address] != nil }

  /// Nothing can arrive from the address or reach it any longer, because its connection has ended.
  package func forget(_ address: SocketAddress, now: Instant) { paths.forget(address, now: now) }

  func count(_ outbox: Outbox, since before: Outbox.State) {
    counts.pointee.datagramsOut &+= outbox.state.pointee.datagrams &- before.datagrams
    counts.pointee.bytesOut &+= outbox.state.pointee.bytes &- before.bytes
  }
}

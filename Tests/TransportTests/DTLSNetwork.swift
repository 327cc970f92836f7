import MediaModel
import Seeded
import Transport

/// A client and a server on a seeded network that loses, reorders and repeats datagrams, in virtual time.
final class DTLSNetwork {
  struct Conditions {
    var loss = 0.0
    var duplication = 0.0
    /// Each datagram takes 5 ms and up to this much more, so that later ones may overtake.
    var jitter = Duration.zero
  }

  struct Side {
    var session: DTLSSession
    var keys: SRTPKeys?
    var end: DTLSSession.Progress?
    /// Datagrams that it sent.
    var sent: [[UInt8]] = []
  }

  private struct Transit {
    var arrival: Instant
    var isToServer: Bool
    var datagram: [UInt8]
  }

  private(set) var now = Instant(nanoseconds: 1_000_000)
  var client: Side
  var server: Side
  /// Decides the fate of each datagram before chance does; the number counts the datagrams of the same sender.
  var isLost: (_ isFromClient: Bool, _ number: Int) -> Bool = { _, _ in false }

  private let conditions: Conditions
  private var generator: SeededGenerator
  private var transits: [Transit] = []

  init(client: DTLSSession, server: DTLSSession, seed: UInt64 = 0, conditions: Conditions = Conditions()) {
    self.client = Side(session: client)
    self.server = Side(session: server)
    self.conditions = conditions
    generator = SeededGenerator(seed: seed)
  }

  /// Runs from the ClientHello until both sides are connected, the client has ended, or nothing more will happen.
  func run() {
    start()
    while client.end == nil, server.end == nil || !transits.isEmpty, client.keys == nil || server.keys == nil {
      guard step() else { return }
    }
  }

  /// Sends the ClientHello, once.
  func start() { call(isClient: true) { $0.start(now: now, send: $1) } }

  /// Handles the next arrival or timeout; returns false when there is none.
  func step() -> Bool {
    let next = transits.indices.min { transits[$0].arrival < transits[$1].arrival }
    let timeouts = [client.session.nextTimeout, server.session.nextTimeout]
    let timeout = timeouts.compactMap(\.self).min()
    if let next, timeout.map({ transits[next].arrival <= $0 }) ?? true {
      let transit = transits.remove(at: next)
      now = max(now, transit.arrival)
      deliver(transit.datagram, toServer: transit.isToServer)
      return true
    }
    guard let timeout else { return false }
    now = max(now, timeout)
    for (isClient, due) in zip([true, false], timeouts) where due == timeout {
      call(isClient: isClient) { $0.handleTimeout(now: now, send: $1) }
    }
    return true
  }

  func deliver(_ datagram: [UInt8], toServer: Bool) {
    datagram.withUnsafeBytes { datagram in
      call(isClient: !toServer) { $0.handle(datagram, now: now, send: $1) }
    }
  }

  private func call(
    isClient: Bool, _ body: (DTLSSession, (UnsafeRawBufferPointer) -> Void) -> DTLSSession.Progress
  ) {
    var sent: [[UInt8]] = []
    let outcome = body(isClient ? client.session : server.session) { sent.append(Array($0)) }
    for datagram in sent { send(datagram, fromClient: isClient) }
    switch outcome {
    case .none: break
    case .connected(let keys): if isClient { client.keys = keys } else { server.keys = keys }
    case .failed, .closed: if isClient { client.end = outcome } else { server.end = outcome }
    }
  }

  private func send(_ datagram: [UInt8], fromClient: Bool) {
    let number = fromClient ? client.sent.count : server.sent.count
    if fromClient { client.sent.append(datagram) } else { server.sent.append(datagram) }
    guard !isLost(fromClient, number), !chance(conditions.loss) else { return }
    for _ in 0..<(chance(conditions.duplication) ? 2 : 1) {
      let delay = Duration.milliseconds(5) + conditions.jitter * Double.random(in: 0...1, using: &generator)
      transits.append(Transit(arrival: now.advanced(by: delay), isToServer: fromClient, datagram: datagram))
    }
  }

  private func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &generator) < probability }
}
